"""TensorRT's documented fusions (section 23): what runs, under which names, and that it computes the same.

tensorrt-features.md#23.1, 23.2, 23.4 to 23.14, 23.16 to 23.18, 23.20 to 23.25, 23.29.

Each pattern is compiled twice: as it is, and with the tensors inside of it as outputs too, which nothing may then be
fused over. Both must give what the layers give one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from layer_chains import (
    Step,
    activation,
    chain,
    combined,
    convolved,
    deconvolved,
    fused,
    launches,
    padded,
    random_array,
    ranked,
    reduced,
    results,
    scaled,
    shuffled,
    softmax,
    squared,
    unary,
)
from layer_networks import CollectingLogger

import mlirt as trt
from mlirt.dialects.interpreter import interpret
from mlirt.runtime.engine import load

Activation, Unary, Kind = trt.ActivationType, trt.UnaryOperation, trt.ElementWiseOperation
SUM, AVERAGE = trt.ReduceOperation.SUM, trt.ReduceOperation.AVG
UNIFORM, CHANNEL = trt.ScaleMode.UNIFORM, trt.ScaleMode.CHANNEL

SHAPE = (2, 4, 8, 8)
CONVOLUTION = convolved(random_array(4, 4, 3, 3), random_array(4))
DECONVOLUTION = deconvolved(random_array(4, 3, 3, 3), 2)
RELU = activation(Activation.RELU)
ONE, ZERO, TWO = (np.array([number], np.float32) for number in (1, 0, 2))


def matrix(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_fully_connected(x, 5, random_array(5, 256), random_array(5))


def pairs(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    """The maximum of squares, for which the next layer has only one tensor to read."""
    layer = network.add_pooling_nd(x, trt.PoolingType.MAX, (2, 2))
    layer.stride_nd = (2, 2)
    return layer


PATTERNS: list[tuple[str, Sequence[Step], list[str]]] = [
    ("23.1", [RELU, RELU], ["pointwise: a"]),
    ("23.1 of two kinds", [RELU, activation(Activation.SIGMOID)], ["pointwise: a + b"]),
    ("23.2, 23.25", [CONVOLUTION, RELU], ["convolution: a + b"]),
    ("23.4", [CONVOLUTION, activation(Activation.CLIP, -1, 1)], ["convolution: a + b"]),
    ("23.5", [scaled(UNIFORM, ONE, TWO, ONE), activation(Activation.TANH)], ["pointwise: a + b"]),
    *(
        (f"23.6 {kind.name}", [CONVOLUTION, combined(kind, random_array(1, 4, 6, 6))], ["convolution: a + b"])
        for kind in (Kind.SUM, Kind.MIN, Kind.MAX)
    ),
    ("23.6 of channels", [CONVOLUTION, combined(Kind.PROD, random_array(1, 4, 1, 1))], ["convolution: a + b"]),
    ("23.7", [padded((1, 2), (0, 1)), CONVOLUTION], ["convolution: a + b"]),
    ("23.7 of a deconvolution", [padded((1, 2), (0, 1)), DECONVOLUTION], ["convolution: a + b"]),
    ("23.7 of a deconvolution, negative", [padded((-1, 0), (0, 0)), DECONVOLUTION], ["pad: a", "convolution: b"]),
    ("23.7 negative", [padded((-1, 0), (0, 0)), CONVOLUTION], ["pad: a", "convolution: b"]),
    ("23.8", [shuffled((0, 2, 3, 1)), reduced(SUM, [3])], ["reduction: b"]),
    ("23.8 without the axis", [shuffled((0, 3, 2, 1)), reduced(SUM, [2], False)], ["reduction: a + b"]),
    ("23.9", [shuffled((0, 2, 3, 1)), shuffled((0, 3, 1, 2), (2, 4, 64))], []),
    ("23.9 inseparable", [shuffled((0, 2, 3, 1), (2, 16, 16)), shuffled((0, 2, 1))], ["pointwise: a + b"] * 2),
    ("23.10", [activation(Activation.TANH), scaled(UNIFORM, ZERO, ONE, ONE)], ["pointwise: a"]),
    (
        "23.11, 23.29",
        [CONVOLUTION, scaled(CHANNEL, random_array(4), random_array(4, seed=1), np.ones(4, np.float32))],
        ["convolution: a + b"],
    ),
    ("23.11 squared", [CONVOLUTION, scaled(UNIFORM, ZERO, TWO, TWO)], ["convolution: a + b"]),
    (
        "23.12",
        [CONVOLUTION, activation(Activation.SOFTPLUS, 1, 1), unary(Unary.SIN)],
        ["convolution: a + b + c"],
    ),
    ("23.13", [reduced(AVERAGE, [2, 3])], ["reduction: a"]),
    ("23.14 before there are blocks", [CONVOLUTION, RELU, pairs], ["convolution: a + b", "window: c"]),
    ("23.16", [softmax(1), unary(Unary.LOG)], ["softmax: a + b"]),
    ("23.18", [matrix, RELU], ["matmul: a + b"]),
    ("23.20", [unary(Unary.ABS), reduced(SUM, [1])], ["reduction: a + b"]),
    ("23.21", [squared, reduced(SUM, [1])], ["reduction: a + b"]),
    ("23.22", [squared, reduced(SUM, [1]), unary(Unary.SQRT)], ["reduction: a + b + c"]),
    ("23.23", [squared, reduced(SUM, [1]), unary(Unary.LOG)], ["reduction: a + b + c"]),
    ("23.24", [unary(Unary.EXP), reduced(SUM, [1]), unary(Unary.LOG)], ["reduction: a + b + c"]),
    (
        "23.29 of layers",
        [CONVOLUTION, combined(Kind.PROD, random_array(1, 4, 1, 1)), combined(Kind.SUM, random_array(1, 4, 1, 1))],
        ["convolution: a + b + c"],
    ),
]


@pytest.mark.parametrize(("row", "steps", "expected"), PATTERNS, ids=[row for row, *_ in PATTERNS])
def test_pattern(row: str, steps: Sequence[Step], expected: list[str]) -> None:
    last = len(steps) - 1
    feeds = {"x": random_array(*SHAPE, seed=7)}
    alone, whole = chain(steps, SHAPE, [last]), chain(steps, SHAPE, range(len(steps)))
    module, _ = fused(alone, "cuda")
    assert launches(module) == expected
    module, ctx = fused(alone)
    assert launches(module) == expected
    apart, context = fused(whole)
    found = [interpret(module, ctx, feeds), interpret(apart, context, feeds)]
    for name, want in results(whole, feeds).items():
        for got in found:
            if name in got:
                np.testing.assert_allclose(got[name], want, rtol=1e-4, atol=1e-5, err_msg=f"{row}: {name}")


def test_nothing_is_fused_over_an_output() -> None:
    """tensorrt-features.md#23.2, 23.11 and 23.16: who reads a tensor in between still gets it."""
    for steps in ([CONVOLUTION, RELU], [softmax(1), unary(Unary.LOG)], [squared, reduced(SUM, [1])]):
        module, _ = fused(chain(steps, SHAPE, [0, 1]))
        assert [one.partition(": ")[2] for one in launches(module)] == ["a", "b"]


@pytest.mark.parametrize("steps", [[CONVOLUTION, pairs], [CONVOLUTION, RELU, pairs]], ids=["bare", "activated"])
def test_a_convolution_pools_its_results(steps: Sequence[Step]) -> None:
    """tensorrt-features.md#23.14, on a CPU: once channels lie in blocks. Both run where both are outputs."""
    feeds = {"x": random_array(*SHAPE, seed=7)}
    last = len(steps) - 1
    name = " + ".join("abc"[: len(steps)])
    for outputs, pooled in (([last], True), ([0, last], False)):
        network = chain(steps, SHAPE, outputs)
        module, ctx = fused(network, last="layout")
        assert (f"convolution: {name}" in launches(module)) == pooled
        assert any(one.startswith("window") for one in launches(module)) != pooled
        found = interpret(module, ctx, feeds)
        for output, want in results(network, feeds).items():
            np.testing.assert_allclose(found[output], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [[softmax(1)], [softmax(1), unary(Unary.LOG)]], ids=["shares", "logarithms"])
def test_shares_of_the_largest_scores(steps: Sequence[Step]) -> None:
    """tensorrt-features.md#23.17, on a CPU: of 256 shares 4 are computed. Where the shares are an output, all are."""
    shape, last = (3, 256, 2), len(steps)
    feeds = {"x": random_array(*shape, seed=7)}
    name = " + ".join("abc"[: last + 1])
    for outputs, expected in (([last], f"topk: {name}"), ([last - 1, last], f"topk: {'abc'[last]}")):
        network = chain([*steps, ranked(4, 1)], shape, outputs)
        places = network.get_layer(last).get_output(1)
        places.name = "places"
        network.mark_output(places)
        module, ctx = fused(network)
        assert expected in launches(module)
        found = interpret(module, ctx, feeds)
        for output, want in results(network, feeds).items():
            np.testing.assert_allclose(found[output], want, rtol=1e-4, atol=1e-5)
    assert launches(fused(chain([*steps, ranked(4, 1)], shape, [last]), "cuda")[0])[0].startswith("softmax")


@pytest.mark.parametrize(
    ("steps", "shape", "fusion"),
    [
        ([CONVOLUTION, RELU, pairs], SHAPE, "convolution: a + b + c"),
        ([softmax(1), ranked(2, 1)], (3, 256), "topk: a + b"),
        ([padded((1, 2), (0, 1)), DECONVOLUTION], SHAPE, "convolution: a + b"),
    ],
    ids=["23.14", "23.17", "23.7"],
)
def test_the_log_says_so(steps: Sequence[Step], shape: Sequence[int], fusion: str) -> None:
    """And what the engine for a CPU computes is what the layers mean."""
    logger, last = CollectingLogger(), len(steps) - 1
    builder, network = trt.Builder(logger), chain(steps, shape, [last])
    config = builder.create_builder_config()
    config.target = "cpu"
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    family, name = fusion.split(": ")
    said = logger.text(trt.Severity.INFO)
    assert f"Fused into one {family}: {name}" in said
    feeds = {"x": random_array(*shape, seed=7)}
    found = load(bytes(plan)).run(feeds)
    for output, want in results(network, feeds).items():
        np.testing.assert_allclose(found[output], want, rtol=1e-4, atol=1e-5)
