"""Casts to and from half precision on CPUs, with the processor's instructions and without them: the bits of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import Array, model_of

import mlirt
from mlirt.builder.host import cpu_target

_TYPES = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT}


def every_half() -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def floats() -> Array:
    """Those around each float16 and around the middle of each two, others at random, and the ends of the range."""
    exact = every_half().astype(np.float32)
    exact = np.sort(exact[np.isfinite(exact)])
    middles = ((exact[1:].astype(np.float64) + exact[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(values, np.float32(to)) for values in (exact, middles) for to in (-np.inf, np.inf)]
    random = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, dtype=np.uint32).view(np.float32)
    ends = np.array([65519.996, 65520, 65536, 1e30, np.inf, np.nan, 2.0**-25, 2.0**-24, 2.0**-14, 1e-40, 0], np.float32)
    return np.concatenate([exact, middles, *near, random[np.isfinite(random)], ends, -ends])


def cast(array: Array, to: str) -> Array:
    node = helper.make_node("Cast", ["x"], ["y"], to=_TYPES[to], name="cast")
    model = model_of([node], {"x": (array.dtype.name, array.shape)}, ["y"])
    return mlirt.compile(model, "cpu").run({"x": array})["y"]


@pytest.mark.parametrize("bits", [128, 0], ids=["baseline", "this machine"])
@pytest.mark.parametrize("to", ["float16", "float32"])
def test_casts_have_the_bits_of_numpy(monkeypatch: pytest.MonkeyPatch, bits: int, to: str) -> None:
    monkeypatch.setenv("MLIRT_VECTOR_BITS", str(bits or cpu_target().vector_bits))
    given = floats() if to == "float16" else every_half()
    with np.errstate(over="ignore", under="ignore"):
        want = given.astype(to)
    found = cast(given, to)
    word = np.uint16 if to == "float16" else np.uint32
    is_nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(found), is_nan)
    np.testing.assert_array_equal(found[~is_nan].view(word), want[~is_nan].view(word))


def test_layers_of_half_precision_run_on_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_VECTOR_BITS", "128")
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float16", (3, 37))}, ["y"])
    x = np.linspace(-3, 3, 111, dtype=np.float16).reshape(3, 37)
    np.testing.assert_array_equal(mlirt.compile(model, "cpu").run({"x": x})["y"], np.maximum(x, 0))
