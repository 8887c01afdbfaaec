"""Whole networks on a GPU: right, deterministic, saved and loaded, with dynamic shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attending_network import attending_network
from onnx_models import run_onnxruntime
from small_network import network

import mlirt

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]


def image(batch: int) -> Array:
    return np.random.default_rng(1).standard_normal((batch, 3, 64, 64)).astype(np.float32)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("fp16", 2e-2)])
def test_a_network_is_right_and_deterministic(precision: str, tolerance: float) -> None:
    want = mlirt.compile(network(), target="reference").run({"x": image(1)})["y"]
    engine = mlirt.compile(network(), target="cuda", precision=precision)
    found = engine.run({"x": image(1)})["y"]
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance)
    assert all(engine.run({"x": image(1)})["y"].tobytes() == found.tobytes() for _ in range(100))


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp16", 2e-3)])
def test_a_network_of_many_kinds_of_layers(precision: str, tolerance: float) -> None:
    model, inputs = attending_network()
    engine = mlirt.compile(model, "cuda", precision, heuristic=True)
    found = engine.run(inputs)
    np.testing.assert_allclose(found["classes"], run_onnxruntime(model, inputs)[0], atol=tolerance)
    for _ in range(100):
        assert all(array.tobytes() == found[name].tobytes() for name, array in engine.run(inputs).items())


@pytest.mark.parametrize(("precision", "tolerance"), [("int8", 1e-5), ("int8+fp16", 2e-2)])
def test_bytes_are_those_of_the_reference(precision: str, tolerance: float) -> None:
    ranges = mlirt.calibrate(network(), [{"x": image(1)}])
    reference = mlirt.compile(network(), target="reference", precision="int8", calibration=ranges)
    engine = mlirt.compile(network(), target="cuda", precision=precision, calibration=ranges)
    want = reference.run({"x": image(1)})["y"]
    found = engine.run({"x": image(1)})["y"]
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance)
    assert all(engine.run({"x": image(1)})["y"].tobytes() == found.tobytes() for _ in range(20))


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
