"""Random networks of quantised layers: every quantised tensor has the bytes that onnxruntime's has."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import run_onnxruntime
from quantized_arithmetic import differences
from quantized_chains import random_network

import mlirt


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("seed", range(8))
def test_every_tensor(seed: int, dtype: str) -> None:
    model, feeds = random_network(seed, dtype)
    found = dict(zip([output.name for output in model.graph.output], differences(model, feeds), strict=True))
    assert {name: different for name, different in found.items() if different != (0, 0)} == {}


@pytest.mark.parametrize("seed", [100, 101])
def test_kernels_of_the_cpu(seed: int) -> None:
    """Only the last tensor is an output, so that layers fuse."""
    model, feeds = random_network(seed, "uint8")
    last = model.graph.output[-1]
    del model.graph.output[:]
    model.graph.output.append(last)
    (found,) = mlirt.compile(model, target="cpu").run(feeds).values()
    np.testing.assert_array_equal(found, run_onnxruntime(model, feeds)[0])
