"""Fusions of more than a chain (sections 23 to 25): siblings, parts of a whole, pointwise graphs, transformers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from layer_chains import activation, chain, fused, launches, random_array, results
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built as engine_of
from network_engines import cpu_config

import mlirt as trt
from mlirt.builder.build import build
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.network.module import network_module

Activation, Unary, Kind = trt.ActivationType, trt.UnaryOperation, trt.ElementWiseOperation
NONE = trt.MatrixOperation.NONE


def check(
    network: trt.INetworkDefinition, feeds: dict[str, Array], target: str = "cpu", precision: str = "fp32"
) -> list[str]:
    """The launches of a network that computes after its fusions what its layers say."""
    module, ctx = fused(network, target, precision)
    found = interpret(module, ctx, feeds)
    relative, absolute = (1e-4, 1e-5) if precision == "fp32" else (1e-2, 1e-2)
    for name, want in results(network, feeds).items():
        np.testing.assert_allclose(found[name], want, rtol=relative, atol=absolute)
    return launches(module)


def with_outputs(network: trt.INetworkDefinition, *tensors: trt.ITensor) -> trt.INetworkDefinition:
    for number, tensor in enumerate(tensors):
        tensor.name = f"y{number}"
        network.mark_output(tensor)
    return network


def named(layer: trt.ILayer, name: str) -> trt.ITensor:
    layer.name = name
    return layer.get_output(0)


@pytest.mark.parametrize(("stride", "count"), [((1, 1), 1), ((2, 2), 2)])
def test_convolutions_of_one_input(stride: tuple[int, int], count: int) -> None:
    """tensorrt-features.md#23.26: few channels each, so that one kernel has package for both; another stride is another
    convolution.
    """
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 16, 8, 8))
    outputs: list[trt.ITensor] = []
    for name, maps, step in (("a", 4, (1, 1)), ("b", 6, stride)):
        layer = network.add_convolution_nd(x, maps, (3, 3), random_array(maps, 16, 3, 3, seed=maps))
        layer.stride_nd = step
        outputs.append(named(layer, name))
    found = check(with_outputs(network, *outputs), {"x": random_array(1, 16, 8, 8)})
    assert [one for one in found if one.startswith("convolution")] == {
        1: ["convolution: a + b"],
        2: ["convolution: a", "convolution: b"],
    }[count]
    logger = CollectingLogger()
    config = cpu_config(logger)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = engine_of(network, config, logger)
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    told = [one["Name"] for one in json.loads(text)["Layers"] if one["LayerType"] == "Convolution"]
    assert told == {1: ["a || b"], 2: ["a", "b"]}[count]
    feeds = {"x": random_array(1, 16, 8, 8)}
    for name, want in results(network, feeds).items():
        np.testing.assert_allclose(engine.engine.run(feeds)[name], want, rtol=1e-4, atol=1e-4)


def test_parts_are_written_into_the_whole() -> None:
    """tensorrt-features.md#23.27: both producers write in place; an input of the network is copied."""
    network = new_network()
    x = network.add_input("x", trt.float32, (2, 4))
    parts = [named(network.add_activation(x, Activation.TANH), "a"), named(network.add_unary(x, Unary.SIN), "b"), x]
    joined = network.add_concatenation(parts)
    joined.axis = 1
    with_outputs(network, named(joined, "c"))
    module, _ = fused(network)
    assert "fused.in_place = [true, true, false]" in str(module)
    assert check(network, {"x": random_array(2, 4)}) == ["pointwise: a", "pointwise: b", "concat: c"]


def test_what_nobody_reads_and_what_is_known() -> None:
    """tensorrt-features.md#23.28 and 23.30: neither the dead layer nor the one of constants runs."""
    network = new_network()
    x = network.add_input("x", trt.float32, (2, 4))
    network.add_unary(x, Unary.EXP).name = "dead"
    known = named(network.add_unary(constant(network, np.ones((1, 4), np.float32)), Unary.EXP), "known")
    with_outputs(network, named(network.add_elementwise(x, known, Kind.SUM), "a"))
    assert check(network, {"x": random_array(2, 4)}) == ["pointwise: a"]


@pytest.mark.parametrize("cubic", [None, 0.044715, 0.0457])
def test_gelu_of_layers(cubic: float | None) -> None:
    """tensorrt-features.md#23.19: by the error function, by tanh, and by a formula that is nearly but not quite the
    latter.
    """
    network = new_network()
    x = network.add_input("x", trt.float32, (2, 64))

    def times(value: trt.ITensor, factor: float) -> trt.ITensor:
        number = constant(network, np.full((1, 1), factor, np.float32))
        return network.add_elementwise(value, number, Kind.PROD).get_output(0)

    def both(kind: trt.ElementWiseOperation, left: trt.ITensor, right: trt.ITensor) -> trt.ITensor:
        return network.add_elementwise(left, right, kind).get_output(0)

    if cubic is None:
        inner = network.add_unary(times(x, 0.5**0.5), Unary.ERF).get_output(0)
    else:
        cube = both(Kind.PROD, both(Kind.PROD, x, x), x)
        argument = times(both(Kind.SUM, x, times(cube, cubic)), (2 / np.pi) ** 0.5)
        inner = network.add_activation(argument, Activation.TANH).get_output(0)
    one = constant(network, np.ones((1, 1), np.float32))
    with_outputs(network, both(Kind.PROD, times(x, 0.5), both(Kind.SUM, inner, one)))
    assert len(check(network, {"x": random_array(2, 64)})) == 1


@pytest.mark.filterwarnings("ignore:Issues were encountered when converting weights")  # one is subnormal
@pytest.mark.parametrize(("target", "precision"), [("cpu", "fp32"), ("cuda", "fp32"), ("cuda", "fp16")])
def test_gelu_behind_a_convolution(target: str, precision: str) -> None:
    """tensorrt-features.md#23.3, in single precision too: all of the formula is the convolution's epilogue."""
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 16, 6, 6))
    kernel = random_array(16, 16, 3, 3) / np.float32(12)
    y = named(network.add_convolution_nd(x, 16, (3, 3), kernel), "conv")

    def times(value: trt.ITensor, factor: float, name: str) -> trt.ITensor:
        number = constant(network, np.full((1, 1, 1, 1), factor, np.float32))
        return named(network.add_elementwise(value, number, Kind.PROD), name)

    inner = named(network.add_unary(times(y, 0.5**0.5, "scale"), Unary.ERF), "erf")
    one = constant(network, np.ones((1, 1, 1, 1), np.float32))
    more = named(network.add_elementwise(inner, one, Kind.SUM), "more")
    with_outputs(network, named(network.add_elementwise(times(y, 0.5, "half"), more, Kind.PROD), "gelu"))
    found = check(network, {"x": random_array(1, 16, 6, 6)}, target, precision)
    (launch,) = [one for one in found if one.startswith("convolution")]
    assert launch.startswith("convolution: conv + ")
    assert launch.endswith("gelu")


def test_convolutions_by_depth_and_by_point() -> None:
    """tensorrt-features.md#23.15 in floating point: both stay, each with the activation behind it."""
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 16, 6, 6))
    depth = network.add_convolution_nd(x, 16, (3, 3), random_array(16, 1, 3, 3))
    depth.num_groups = 16
    first = named(network.add_activation(named(depth, "a"), Activation.RELU), "b")
    point = named(network.add_convolution_nd(first, 8, (1, 1), random_array(8, 16, 1, 1)), "c")
    with_outputs(network, named(network.add_activation(point, Activation.RELU), "d"))
    assert check(network, {"x": random_array(1, 16, 6, 6)}) == ["convolution: a + b", "convolution: c + d"]


@pytest.mark.parametrize("seed", range(4))
def test_pointwise_graphs(seed: int) -> None:
    """tensorrt-features.md#24.1, 24.4 and 24.5: all eligible layers at random, with rows that are repeated and several
    outputs.
    """
    rng = np.random.default_rng(seed)
    network = new_network()
    tensors = [network.add_input(name, trt.float32, shape) for name, shape in (("x", (3, 5)), ("row", (1, 5)))]
    feeds = {"x": random_array(3, 5), "row": random_array(1, 5, seed=1)}
    tensors.append(network.add_elementwise(tensors[0], tensors[1], Kind.SUM).get_output(0))
    tensors.append(constant(network, np.full((1, 1), 0.5, np.float32)))
    for _ in range(16):
        left, right = (tensors[int(rng.integers(len(tensors)))] for _ in range(2))
        choice = rng.integers(3)
        if choice == 0:
            kinds = (Activation.RELU, Activation.SIGMOID, Activation.TANH, Activation.SOFTSIGN)
            layer = network.add_activation(left, kinds[int(rng.integers(4))])
        elif choice == 1:
            layer = network.add_unary(left, (Unary.SIN, Unary.NEG, Unary.ABS, Unary.FLOOR)[int(rng.integers(4))])
        else:
            pair = (Kind.SUM, Kind.SUB, Kind.MIN, Kind.MAX)
            layer = network.add_elementwise(left, right, pair[int(rng.integers(4))])
        tensors.append(layer.get_output(0))
    whole = [one for one in tensors[2:] if tuple(one.shape) == (3, 5)]
    with_outputs(network, *whole[-2:])
    found = check(network, feeds)
    assert all(one.startswith("pointwise: ") for one in found)
    assert len(found) <= 3, "one for each output, and one for rows"


def test_a_long_chain() -> None:
    """tensorrt-features.md#24.3: 200 layers, compiled."""
    steps = [activation(Activation.SIGMOID), activation(Activation.LEAKY_RELU, 0.5), activation(Activation.TANH)]
    network = chain([steps[number % 3] for number in range(200)], (2, 4), [199])
    feeds = {"x": random_array(2, 4)}
    ctx = RtContext()
    engine = build(network_module(network, ctx), ctx, "cpu")
    np.testing.assert_allclose(engine.run(feeds)["y199"], results(network, feeds)["y199"], rtol=1e-4)


def product(network: trt.INetworkDefinition, x: trt.ITensor, columns: int, seed: int) -> trt.ITensor:
    rows = x.shape[-1]
    matrix = constant(network, random_array(*[1] * (len(x.shape) - 2), rows, columns, seed=seed) / 4)
    return network.add_matrix_multiply(x, NONE, matrix, NONE).get_output(0)


@pytest.mark.parametrize(("target", "count"), [("cpu", 3), ("cuda", 1)])
def test_layer_normalization_of_layers(target: str, count: int) -> None:
    """tensorrt-features.md#25.1: mean, variance and the rest; one launch on a GPU."""
    network = new_network()
    x = network.add_input("x", trt.float32, (4, 64))
    average = trt.ReduceOperation.AVG
    off = network.add_elementwise(x, network.add_reduce(x, average, 2, True).get_output(0), Kind.SUB).get_output(0)
    square = network.add_elementwise(off, constant(network, np.full((1, 1), 2, np.float32)), Kind.POW).get_output(0)
    variance = network.add_reduce(square, average, 2, True).get_output(0)
    small = constant(network, np.full((1, 1), 1e-5, np.float32))
    spread = network.add_elementwise(variance, small, Kind.SUM).get_output(0)
    root = network.add_unary(spread, Unary.SQRT).get_output(0)
    with_outputs(network, network.add_elementwise(off, root, Kind.DIV).get_output(0))
    assert len(check(network, {"x": random_array(4, 64)}, target)) == count


def test_epilogues_and_transposes_of_products() -> None:
    """tensorrt-features.md#25.3 and 25.5: bias and ReLU are part of the product, and so is the transposition in front
    of it.
    """
    network = new_network()
    x = network.add_input("x", trt.float32, (16, 8))
    transposed = network.add_shuffle(x)
    transposed.first_transpose = (1, 0)
    y = product(network, transposed.get_output(0), 32, 0)
    biased = network.add_elementwise(y, constant(network, random_array(1, 32)), Kind.SUM).get_output(0)
    with_outputs(network, network.add_activation(biased, Activation.RELU).get_output(0))
    assert [one.partition(":")[0] for one in check(network, {"x": random_array(16, 8)})] == ["matmul"]


@pytest.mark.filterwarnings("ignore:Issues were encountered when converting weights")  # two are subnormal
@pytest.mark.parametrize(("target", "precision"), [("cpu", "fp32"), ("cuda", "fp16")])
def test_attention_of_layers(target: str, precision: str) -> None:
    """tensorrt-features.md#25.2, 25.4 and 25.6: one product gives queries, keys and values, the scale is part of the
    attention.
    """
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 32, 64))
    query, key, value = (product(network, x, 64, seed) for seed in range(3))
    scores = network.add_matrix_multiply(query, NONE, key, trt.MatrixOperation.TRANSPOSE).get_output(0)
    eighth = constant(network, np.full((1, 1, 1), 0.125, np.float32))
    weights = network.add_softmax(network.add_elementwise(scores, eighth, Kind.PROD).get_output(0))
    weights.axes = 1 << 2
    with_outputs(network, network.add_matrix_multiply(weights.get_output(0), NONE, value, NONE).get_output(0))
    found = check(network, {"x": random_array(1, 32, 64)}, target, precision)
    assert [one.partition(":")[0] for one in found if "pointwise" not in one] == ["matmul", "attention"]
