"""What else is done with networks that have plugins: several outputs, refit, int8, calibration, the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of
from repeat_plugin import Array, Repeat, RepeatCreator, registered

import mlirt
import mlirt as trt

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def built(fill: Callable[[trt.INetworkDefinition], trt.ITensor], *flags: trt.BuilderFlag) -> bytes:
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    output = fill(network)
    output.name = "y"
    network.mark_output(output)
    config = builder.create_builder_config()
    config.target = "cpu"
    for flag in flags:
        config.set_flag(flag)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return bytes(plan)


class SumAndSeven(Repeat):
    """The sum of two tensors, and sevens."""

    def __init__(self, factor: float = 1.0, times: int = 1, events: list[str] | None = None) -> None:
        super().__init__(factor, times, events)
        self.num_outputs = 2

    def compute(self, given: Sequence[Array], made: Sequence[Array], workspace: int) -> None:
        made[0][...] = given[0] + given[1]
        made[1][...] = 7


@pytest.mark.parametrize(("output", "expected"), [(0, 2 * X), (1, np.full_like(X, 7))])
def test_several_outputs(output: int, expected: Array) -> None:
    """An output that nobody reads has memory all the same; one tensor may be given twice."""

    def fill(network: trt.INetworkDefinition) -> trt.ITensor:
        x = network.add_input("x", trt.float32, (2, 3))
        return network.add_plugin_v2([x, x], SumAndSeven()).get_output(output)

    with registered(RepeatCreator(SumAndSeven)):
        np.testing.assert_array_equal(mlirt.load(built(fill)).run({"x": X})["y"], expected)


def test_refit() -> None:
    """The bytes of a plugin are no weights that could be replaced, and come through a refit."""

    def fill(network: trt.INetworkDefinition) -> trt.ITensor:
        constant = network.add_constant((2, 3), np.ones((2, 3), np.float32))
        constant.name = "shift"
        x = network.add_input("x", trt.float32, (2, 3))
        shifted = network.add_elementwise(x, constant.get_output(0), trt.ElementWiseOperation.SUM)
        return network.add_plugin_v2([shifted.get_output(0)], Repeat(3.0)).get_output(0)

    with registered(RepeatCreator()):
        engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(built(fill, trt.BuilderFlag.REFIT))
        assert engine is not None
        refitter = trt.Refitter(engine, trt.Logger())
        assert refitter.get_all() == (["shift"], [trt.WeightsRole.CONSTANT])
        assert refitter.set_weights("shift", trt.WeightsRole.CONSTANT, np.full((2, 3), 10, np.float32))
        assert refitter.refit_cuda_engine()
        found = np.empty((2, 3), np.float32)
        assert engine.create_execution_context().execute_v2([X.ctypes.data, found.ctypes.data])
    np.testing.assert_array_equal(found, 3 * (X + 10))


def test_int8_around_a_plugin() -> None:
    """tensorrt-features.md#19.12: convolutions compute with bytes, the plugin between them takes float32."""
    random = np.random.default_rng(0)
    weights = random.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
    image = random.standard_normal((1, 16, 8, 8)).astype(np.float32)

    def fill(network: trt.INetworkDefinition) -> trt.ITensor:
        tensor = network.add_input("x", trt.float32, (1, 16, 8, 8))
        tensor.dynamic_range = (-3, 3)
        for limit in (4, 3):
            tensor = network.add_convolution_nd(tensor, 16, (3, 3), weights).get_output(0)
            tensor.dynamic_range = (-limit, limit)
            tensor = network.add_plugin_v2([tensor], Repeat(0.5)).get_output(0)
            tensor.dynamic_range = (-limit / 2, limit / 2)
        return tensor

    with registered(RepeatCreator()):
        exact, rounded = (mlirt.load(built(fill, *flags)) for flags in ((), (trt.BuilderFlag.INT8,)))
        difference = exact.run({"x": image})["y"] - rounded.run({"x": image})["y"]
        kinds = [launch["dtype"] for layer in rounded.layers if layer["family"] == "plugin" for launch in inputs(layer)]
    assert 0 < np.abs(difference).max() < 0.05
    assert set(kinds) == {"float32"}


def inputs(layer: object) -> list[dict[str, str]]:
    assert isinstance(layer, dict)
    return layer["inputs"]  # pyright: ignore[reportUnknownVariableType]


def test_reference_and_calibration() -> None:
    """The meaning of the layer is what the plugin computes on the host."""
    node = helper.make_node("Repeat", ["a"], ["y"], name="rep", domain="mine", factor=3.0)
    relu = helper.make_node("Relu", ["x"], ["a"], name="relu")
    model = model_of([relu, node], {"x": ("float32", [2, 3])}, ["y"], domains=["mine"]).SerializeToString()
    with registered(RepeatCreator()):
        np.testing.assert_array_equal(mlirt.compile(model, target="reference").run({"x": X})["y"], 3 * X)
        calibration = mlirt.calibrate(model, [{"x": X}], target="cpu")
    assert 10 < calibration.ranges["y"] <= 15
