"""Networks that quantise while they run: equal to onnxruntime to the bit up to a linear Resize, which rounds otherwise.

Behind it a number may fall on the other side of a rounding to int8, and each further layer spreads that. What a whole
network then is off by is what onnxruntime's own results move by if its input changes in the last bit.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import Array, model_of
from onnxruntime_session import cpu_session

import mlirt

_CHANNELS, _LAYERS, _PARTS = 6, 4, 5


class _Chain:
    """Parts of some convolutions of integers, each with a linear resizing in front but the first."""

    def __init__(self, parts: range) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {"scales": np.array([1, 1, 1.5, 1.5], np.float32)}
        self.layers: list[str] = []
        self.resized: list[str] = []
        name = "x"
        for part in parts:
            name = self._part(part, name, resized=part > parts.start)

    def _part(self, part: int, name: str, *, resized: bool) -> str:
        if resized:
            self.nodes.append(helper.make_node("Resize", [name, "", "scales"], [f"r{part}"], mode="linear"))
            name = f"r{part}"
            self.resized.append(name)
        for layer in range(_LAYERS):
            name = self._layer(f"{part}_{layer}", name)
        return name

    def _layer(self, label: str, x: str) -> str:
        rng = np.random.default_rng(int(label.replace("_", "")))
        stride = 2 if label.endswith("_0") and label != "0_0" else 1
        self.constants[f"w{label}"] = rng.integers(0, 256, (_CHANNELS, _CHANNELS, 3, 3), np.uint8)
        self.constants[f"z{label}"] = np.array(128, np.uint8)
        self.constants[f"s{label}"] = np.array(0.003, np.float32)
        q, scale, zero, whole, factor, real, y = (f"{one}{label}" for one in ("q", "c", "p", "i", "f", "m", "y"))
        inputs = [q, f"w{label}", zero, f"z{label}"]
        self.nodes += [
            helper.make_node("DynamicQuantizeLinear", [x], [q, scale, zero]),
            helper.make_node("ConvInteger", inputs, [whole], pads=[1, 1, 1, 1], strides=[stride, stride]),
            helper.make_node("Cast", [whole], [f"k{label}"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [scale, f"s{label}"], [factor]),
            helper.make_node("Mul", [f"k{label}", factor], [real]),
            helper.make_node("Relu", [real], [y]),
        ]
        self.layers.append(y)
        return y

    def model(self) -> onnx.ModelProto:
        outputs = [*self.resized, *self.layers]
        return model_of(self.nodes, {"x": ("float32", [1, _CHANNELS, "h", "w"])}, outputs, self.constants, 13)

    def onnxruntime(self, x: Array) -> dict[str, Array]:
        session = cpu_session(self.model(), optimized=False)
        return dict(zip([one.name for one in session.get_outputs()], session.run(None, {"x": x}), strict=True))


def image() -> Array:
    return np.random.default_rng(7).normal(size=(1, _CHANNELS, 20, 24)).astype(np.float32)


def test_every_layer_has_the_bits_of_onnxruntime() -> None:
    """Each part, with what onnxruntime gives it, up to the next resizing."""
    x = image()
    for part in range(_PARTS):
        chain = _Chain(range(part, part + 1))
        want, got = chain.onnxruntime(x), mlirt.compile(chain.model(), "cpu").run({"x": x})
        for name in chain.layers:
            np.testing.assert_array_equal(got[name], want[name], name)
        x = want[chain.layers[-1]]


def test_the_first_tensor_that_differs_is_a_resizing_by_its_last_bits() -> None:
    x = image()
    chain = _Chain(range(2))
    want, got = chain.onnxruntime(x), mlirt.compile(chain.model(), "cpu").run({"x": x})
    for name in chain.layers[:_LAYERS]:
        np.testing.assert_array_equal(got[name], want[name], name)
    (resized,) = chain.resized
    units = np.abs(got[resized] - want[resized]) / np.spacing(np.abs(want[chain.layers[_LAYERS - 1]]).max())
    assert 0 < units.max() <= 16  # places are computed in single precision there, in double precision here


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_whole_chain_is_off_by_what_the_last_bits_of_its_input_change(target: str) -> None:
    x, rng = image(), np.random.default_rng(3)
    chain = _Chain(range(_PARTS))
    last = chain.layers[-1]
    want = chain.onnxruntime(x)[last]
    got = mlirt.compile(chain.model(), target).run({"x": x})[last]
    factors: Array = rng.uniform(1 - 1e-7, 1 + 1e-7, (8, *x.shape))
    moved = [chain.onnxruntime((x * factors[k]).astype(np.float32))[last] for k in range(8)]
    noise = max(float(np.linalg.norm(other - want)) for other in moved)
    assert np.linalg.norm(got - want) <= 2 * noise + 1e-5 * np.linalg.norm(want)
