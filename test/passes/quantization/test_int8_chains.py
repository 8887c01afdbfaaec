"""Random networks of quantised layers: every quantised tensor has the bytes that onnxruntime's has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import model_of, run_onnxruntime
from quantized_arithmetic import differences
from quantized_chains import Chain, random_network

import mlirt


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("seed", range(8))
def test_every_tensor(seed: int, dtype: str) -> None:
    model, feeds = random_network(seed, dtype)
    found = dict(zip([output.name for output in model.graph.output], differences(model, feeds), strict=True))
    assert {name: different for name, different in found.items() if different != (0, 0)} == {}


@pytest.mark.parametrize(
    ("op_type", "shape", "weights", "attributes"),
    [
        ("Conv", (1, 6, 11, 13), (7, 6, 3, 3), {}),
        ("ConvTranspose", (1, 6, 11, 13), (6, 7, 2, 2), {"strides": [2, 2]}),
        ("Gemm", (5, 40), (7, 40), {"transB": 1}),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_weights_that_stayed_floats(
    op_type: str, shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any], dtype: str
) -> None:
    for seed in range(3):
        net = Chain(seed, dtype)
        x = net.quantized("x", shape, 2.0)
        arrays = [net.rng.normal(size=size).astype(np.float32) for size in (weights, (7,))]
        y = net.node(op_type, [x.name, *map(net.constant, arrays)], **attributes)
        net.quantized(y, (), 12.0)
        model = model_of(net.nodes, {"x": ("float32", shape)}, net.tensors, net.constants, 17)
        assert differences(model, {"x": net.rng.normal(size=shape).astype(np.float32)}) == [(0, 0)] * 2


@pytest.mark.parametrize("seed", [100, 101])
def test_kernels_of_the_cpu(seed: int) -> None:
    """Only the last tensor is an output, so that layers fuse."""
    model, feeds = random_network(seed, "uint8")
    last = model.graph.output[-1]
    del model.graph.output[:]
    model.graph.output.append(last)
    (found,) = mlirt.compile(model, target="cpu").run(feeds).values()
    np.testing.assert_array_equal(found, run_onnxruntime(model, feeds)[0])
