"""Rows of A16, A17 and A18 that the log answers: sparse weights, fused and removed layers, memory."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built, cpu_config, run

import mlirt as trt
from mlirt.builder.api.sparsity import is_sparse

INFO = trt.Severity.INFO


def by_hand(kernel: Array) -> bool:
    """The guide's algorithm, loop by loop."""
    maps, channels, rows, columns = kernel.shape
    if channels % 4:
        return False
    for k in range(maps):
        for r in range(rows):
            for s in range(columns):
                for first in range(0, channels, 4):
                    if sum(kernel[k, first + c, r, s] != 0 for c in range(4)) > 2:
                        return False
    return True


@pytest.mark.parametrize("seed", range(6))
def test_two_of_four(seed: int) -> None:
    """tensorrt-features.md#16.1: as the guide has it, also where one number is too many, and for other counts of
    channels.
    """
    random = np.random.default_rng(seed)
    channels = (4, 8, 6, 12, 16, 8)[seed]
    kernel = random.standard_normal((3, channels, 2, 3)).astype(np.float32)
    if channels % 4 == 0:
        order = random.random((3, channels // 4, 4, 2, 3)).argsort(2)
        kernel *= (order < 2).reshape(kernel.shape)
    assert is_sparse(kernel) == by_hand(kernel) == (channels % 4 == 0)
    kernel[1, :, 0, 2] = 1
    assert not is_sparse(kernel)
    assert not by_hand(kernel)


@pytest.mark.parametrize("asked", [True, False])
def test_layers_with_sparse_weights(asked: bool) -> None:
    """tensorrt-features.md#16.2 to 16.4: those that could have a sparse kernel are named; dense ones are taken, which
    is said too.
    """
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (1, 8, 4, 4))
    dense = np.random.default_rng(0).standard_normal((8, 8, 1, 1)).astype(np.float32)
    sparse = dense.copy()
    sparse[:, [0, 1, 4, 5]] = 0
    for name, kernel in (("conv1", sparse), ("conv2", dense), ("conv3", sparse)):
        layer = network.add_convolution_nd(x, 8, (1, 1), kernel)
        layer.name, x = name, layer.get_output(0)
    network.mark_output(x)
    flags = [trt.BuilderFlag.SPARSE_WEIGHTS] if asked else []
    config = cpu_config(logger, *flags)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = built(network, config, logger)
    inspector = engine.create_engine_inspector()
    layers = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
    told = [layer["HasSparseWeights"] for layer in layers if "HasSparseWeights" in layer]
    assert told == [0, 0, 0]
    feed = np.random.default_rng(1).standard_normal((1, 8, 4, 4)).astype(np.float32)
    got = run(engine.create_execution_context(), {"x": feed})
    assert got is not None
    expected = feed
    for kernel in (sparse, dense, sparse):
        expected = np.einsum("kcrs,ncyx->nkyx", kernel, expected)
    np.testing.assert_allclose(next(iter(got.values())), expected, rtol=1e-4, atol=1e-4)
    lines = [line for line in logger.text(INFO).splitlines() if line.startswith("(Sparsity)")]
    wanted = [
        "(Sparsity) Layers eligible for sparse math: conv1, conv3",
        "(Sparsity) TRT inference plan picked sparse implementation for layers:",
    ]
    assert lines == (wanted if asked else [])


def test_what_became_of_layers() -> None:
    """tensorrt-features.md#17.18, 23.1, 23.10: fused ones and those that are gone, each by its name."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (4, 4))
    first = network.add_activation(x, trt.ActivationType.RELU)
    second = network.add_activation(first.get_output(0), trt.ActivationType.RELU)
    total = network.add_elementwise(second.get_output(0), x, trt.ElementWiseOperation.SUM)
    same = network.add_elementwise(
        total.get_output(0), constant(network, np.ones((1, 1), np.float32)), trt.ElementWiseOperation.PROD
    )
    curve = network.add_unary(same.get_output(0), trt.UnaryOperation.EXP)
    for name, layer in zip(
        ("relu1", "relu2", "sum", "times1", "exp"), (first, second, total, same, curve), strict=True
    ):
        layer.name = name
    network.mark_output(curve.get_output(0))
    engine = built(network, cpu_config(logger), logger)
    kept = {part for record in engine.engine.layers for part in str(record["name"]).split(" + ")}
    removed = re.findall(r"^Removed, .*: (.*)$", logger.text(INFO), re.MULTILINE)
    gone = set(removed[0].split(", ")) if removed else set[str]()
    assert kept | gone == {"relu1", "relu2", "sum", "times1", "exp"}
    assert kept.isdisjoint(gone)
    assert "times1" in gone


def test_memory_is_reported() -> None:
    """tensorrt-features.md#18.2, 18.3: TensorRT's lines; scratch is what a context needs."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 64))
    product = network.add_matrix_multiply(
        x,
        trt.MatrixOperation.NONE,
        constant(network, np.ones((64, 512), np.float32)),
        trt.MatrixOperation.NONE,
    )
    network.mark_output(network.add_softmax(product.get_output(0)).get_output(0))
    config = cpu_config(logger, shapes={"x": ((1, 64), (2, 64), (100, 64))})
    engine = built(network, config, logger)
    text = logger.text(INFO)
    change = r"\[MemUsageChange\] Build of the engine: CPU [+-]\d+, GPU \+0, now: CPU (\d+), GPU 0 \(MiB\)"
    found = re.search(change, text)
    assert found is not None
    assert 10 < int(found[1]) < 100_000
    host = re.search(r"Total Host Persistent Memory: (\d+)", text)
    assert host is not None
    assert int(host[1]) >= 64 * 512 * 4
    assert "Total Device Persistent Memory: 0" in text
    assert f"Total Scratch Memory: {engine.device_memory_size}" in text
    assert engine.device_memory_size >= 100 * 512 * 4
