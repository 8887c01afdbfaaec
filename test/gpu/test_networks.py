"""Whole networks on a GPU: right, deterministic, saved and loaded, with dynamic shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from attending_network import attending_network
from onnx_models import run_onnxruntime
from repeated_runs import differing_runs
from small_network import network

import mlirt

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]


def image(batch: int) -> Array:
    return np.random.default_rng(1).standard_normal((batch, 3, 64, 64)).astype(np.float32)


def in_format(model: onnx.ModelProto, dtype: type[np.floating[Any]]) -> onnx.ModelProto:
    """The network with all its numbers and tensors in another floating-point format."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    floats, kind = (
        (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16),
        onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
    )
    for tensor in changed.graph.initializer:
        if tensor.data_type in floats:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(dtype), tensor.name))
    for value in (*changed.graph.input, *changed.graph.output):
        if value.type.tensor_type.elem_type in floats:
            value.type.tensor_type.elem_type = kind
    return changed


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("fp16", 2e-2)])
def test_a_network_is_right_and_deterministic(precision: str, tolerance: float) -> None:
    want = mlirt.compile(network(), target="reference").run({"x": image(1)})["y"]
    engine = mlirt.compile(network(), target="cuda", precision=precision)
    found = engine.run({"x": image(1)})["y"]
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance)
    assert differing_runs(engine, {"x": image(1)}) == []


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp16", 2e-3)])
def test_a_network_of_many_kinds_of_layers(precision: str, tolerance: float) -> None:
    model, inputs = attending_network()
    engine = mlirt.compile(model, "cuda", precision, heuristic=True)
    found = engine.run(inputs)
    np.testing.assert_allclose(found["classes"], run_onnxruntime(model, inputs)[0], atol=tolerance)
    assert differing_runs(engine, inputs) == []


@pytest.mark.parametrize(("precision", "tolerance"), [("int8", 1e-5), ("int8+fp16", 2e-2)])
def test_bytes_are_those_of_the_reference(precision: str, tolerance: float) -> None:
    ranges = mlirt.calibrate(network(), [{"x": image(1)}])
    reference = mlirt.compile(network(), target="reference", precision="int8", calibration=ranges)
    engine = mlirt.compile(network(), target="cuda", precision=precision, calibration=ranges)
    want = reference.run({"x": image(1)})["y"]
    found = engine.run({"x": image(1)})["y"]
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance)
    assert differing_runs(engine, {"x": image(1)}, 20) == []


def test_a_network_in_half_precision_is_computed_in_float32() -> None:
    """Only the input, the weights and the output are rounded."""
    half, wide = in_format(network(), np.float16), in_format(in_format(network(), np.float16), np.float32)
    x = image(1).astype(np.float16)
    want = mlirt.compile(wide, target="reference").run({"x": x.astype(np.float32)})["y"]
    found = mlirt.compile(half, target="cuda").run({"x": x})["y"]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(np.float32), want, rtol=2.0**-10, atol=1e-5)


def test_a_saved_plan_gives_the_same_bits(tmp_path: Path) -> None:
    engine = mlirt.compile(network(), target="cuda")
    engine.save(tmp_path / "small.plan")
    loaded = mlirt.load(tmp_path / "small.plan")
    assert loaded.run({"x": image(1)})["y"].tobytes() == engine.run({"x": image(1)})["y"].tobytes()


def test_dynamic_batches() -> None:
    engine = mlirt.compile(network("n"), target="cuda")
    reference = mlirt.compile(network("n"), target="reference")
    for batch in (1, 5, 2, 1):
        want = reference.run({"x": image(batch)})["y"]
        np.testing.assert_allclose(engine.run({"x": image(batch)})["y"], want, atol=1e-4)
