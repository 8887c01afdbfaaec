"""Rows of A1, layers, as a script for TensorRT meets them: networks that are built and run, or refused and why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built, cpu_config, run

import mlirt as trt


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def refused(network: trt.INetworkDefinition, logger: CollectingLogger, *flags: trt.BuilderFlag) -> str:
    """The log of a build that gives nothing."""
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger, *flags)) is None
    return logger.text()


def result(network: trt.INetworkDefinition, layer: trt.ILayer, **feeds: Array) -> Array:
    """The first output of a layer, by an engine."""
    logger = CollectingLogger()
    network.mark_output(layer.get_output(0))
    (found,) = built(network, cpu_config(logger), logger).engine.run(feeds).values()
    return found


def test_a_constant_has_seven_dimensions() -> None:
    """tensorrt-features.md#1.5: eight are refused."""
    logger = CollectingLogger()
    network = new_network(logger)
    network.mark_output(network.add_constant((1,) * 8, np.zeros(1, np.float32)).get_output(0))
    assert "a constant has at most 7 dimensions, got 8" in refused(network, logger)


def test_defaults_of_windows() -> None:
    """tensorrt-features.md#1.6a, 1.7, 1.26a: strides and dilations are 1, pads 0, of as many axes as the window has."""
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 2, 4, 4))
    layers = (
        network.add_convolution_nd(x, 2, (3, 3), numbers(2, 2, 3, 3)),
        network.add_deconvolution_nd(x, 2, (3, 3), numbers(2, 2, 3, 3)),
        network.add_pooling_nd(x, trt.PoolingType.MAX, (2, 2)),
    )
    for layer in layers:
        assert (layer.stride_nd, layer.padding_nd) == ((1, 1), (0, 0))
        assert (layer.pre_padding, layer.post_padding) == ((0, 0), (0, 0))
    assert layers[0].dilation_nd == (1, 1)
    x = network.add_input("v", trt.float32, (1, 1, 3, 4, 4))
    assert network.add_pooling_nd(x, trt.PoolingType.MAX, (2, 2, 2)).stride_nd == (1, 1, 1)


def test_a_pooling_moves_by_one() -> None:
    """tensorrt-features.md#1.26a: windows overlap where no stride is set."""
    network = new_network()
    x = numbers(1, 1, 3, 4)
    layer = network.add_pooling_nd(network.add_input("x", trt.float32, x.shape), trt.PoolingType.MAX, (2, 2))
    expected = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3)).max((4, 5))  # pyright: ignore[reportUnknownMemberType, reportCallIssue, reportArgumentType]  (NumPy's stubs)
    np.testing.assert_array_equal(result(network, layer, x=x), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_a_zero_point_of_nought_is_taken(dtype: type[np.generic]) -> None:
    """tensorrt-features.md#1.8: of any type, as there is nothing to add."""
    network, logger = new_network(), CollectingLogger()
    scale, zero = constant(network, np.array(0.5, np.float32)), constant(network, np.zeros((), dtype))
    codes = network.add_quantize(network.add_input("x", trt.float32, (3,)), scale)
    codes.set_input(2, zero)
    values = network.add_dequantize(codes.get_output(0), scale)
    values.set_input(2, zero)
    network.mark_output(values.get_output(0))
    engine = built(network, cpu_config(logger, trt.BuilderFlag.INT8), logger).engine
    (found,) = engine.run({"x": np.array([0.3, -1, 100], np.float32)}).values()
    np.testing.assert_array_equal(found, [0.5, -1, 63.5])


def test_what_quantization_is_refused() -> None:
    """tensorrt-features.md#1.8, 10.5, 10.15: another zero point, a scale of the run's, scales for each channel of
    activations.
    """

    def a_zero_point(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
        layer = network.add_quantize(x, constant(network, np.array(0.5, np.float32)))
        layer.set_input(2, constant(network, np.array(3, np.int8)))
        return layer

    def a_scale_of_the_run(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
        return network.add_quantize(x, network.add_input("s", trt.float32, ()))

    def scales_of_channels(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
        layer = network.add_quantize(x, constant(network, np.ones(3, np.float32)))
        layer.axis = 1
        return layer

    cases: dict[str, Callable[[trt.INetworkDefinition, trt.ITensor], trt.ILayer]] = {
        "the zero point must be 0, got 3": a_zero_point,
        "the scale is computed by the run; it must be a constant": a_scale_of_the_run,
        "scales for each channel are for weights, not for activations": scales_of_channels,
    }
    for text, make in cases.items():
        logger = CollectingLogger()
        network = new_network(logger)
        network.mark_output(make(network, network.add_input("x", trt.float32, (2, 3))).get_output(0))
        assert text in refused(network, logger, trt.BuilderFlag.INT8)


def test_limits_of_einsum() -> None:
    """tensorrt-features.md#1.9b: lower-case letters and floating-point numbers."""
    for dtype, equation, text in (
        (trt.int32, "ij,ij->i", "einsum requires inputs of type Float or Half"),
        (trt.float32, "IJ,IJ->J", "labels of an Einsum equation are lower-case ASCII letters"),
    ):
        logger = CollectingLogger()
        network = new_network(logger)
        x = network.add_input("x", dtype, (2, 3))
        network.mark_output(network.add_einsum([x, x], equation).get_output(0))
        assert text in refused(network, logger)


@pytest.mark.parametrize(("name", "value"), [("alpha", 1e21), ("beta", 0.001), ("beta", 1e6), ("k", 1e-6), ("k", 1e11)])
def test_ranges_of_lrn(name: str, value: float) -> None:
    """tensorrt-features.md#1.21: alpha, beta and k have ranges."""
    logger = CollectingLogger()
    network = new_network(logger)
    layer = network.add_lrn(network.add_input("x", trt.float32, (1, 3, 2, 2)), 3, 1, 1, 1)
    setattr(layer, name, value)
    network.mark_output(layer.get_output(0))
    assert f"{name} is from" in refused(network, logger)


def test_weights_are_set_as_arrays() -> None:
    """tensorrt-features.md#1.6a, 1.12, 1.33, 2.11: arrays and `Weights` are taken where weights are set later, and
    shown as arrays.
    """
    network, x = new_network(), numbers(1, 2, 3, 3)
    kernel, bias, dense = numbers(2, 2, 2, 2), numbers(2), numbers(3, 8)
    conv = network.add_convolution_nd(network.add_input("x", trt.float32, x.shape), 2, (2, 2), np.zeros_like(kernel))
    conv.kernel, conv.bias = kernel, trt.Weights(bias)
    assert isinstance(conv.kernel, np.ndarray)
    np.testing.assert_array_equal(conv.bias, bias)
    scale = network.add_scale(conv.get_output(0), trt.ScaleMode.UNIFORM, np.zeros(1, np.float32))
    scale.scale = np.array([3], np.float32)
    assert scale.power.size == 0
    connected = network.add_fully_connected(scale.get_output(0), 3, np.zeros_like(dense))
    connected.kernel = dense
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportCallIssue, reportArgumentType]  (NumPy's stubs)
    images: Array = np.einsum("ncpqrs,kcrs->nkpq", windows, kernel) + bias[:, None, None]  # pyright: ignore[reportUnknownArgumentType]  (NumPy's stubs)
    expected = (3 * images).reshape(1, 8) @ dense.T
    np.testing.assert_allclose(result(network, connected, x=x).reshape(1, 3), expected, rtol=1e-4, atol=1e-5)


def test_numbers_of_one_element_are_scalars() -> None:
    """tensorrt-features.md#1.1b, 1.11a: alpha may be an array of one element, and the start of a fill a tensor of one.
    """
    network = new_network()
    layer = network.add_activation(network.add_input("x", trt.float32, (2,)), trt.ActivationType.ELU)
    layer.alpha = np.array([2], np.float32)  # pyright: ignore[reportAttributeAccessIssue]  (as scripts have it)
    assert layer.alpha == 2
    network = new_network()
    fill = network.add_fill((2, 3), trt.FillOperation.LINSPACE)
    fill.set_input(1, constant(network, np.array([1000], np.float32)))
    fill.set_input(2, constant(network, np.array([10, 1], np.float32)))
    expected = 1000 + 10 * np.arange(2)[:, None] + np.arange(3)
    np.testing.assert_array_equal(result(network, fill), expected)


def test_a_resize_without_a_size() -> None:
    """tensorrt-features.md#1.31a: neither shape nor scales: it stays as large as it is."""
    network, x = new_network(), numbers(1, 1, 2, 3)
    layer = network.add_resize(network.add_input("x", trt.float32, x.shape))
    np.testing.assert_array_equal(result(network, layer, x=x), x)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_leading_dimensions_of_rnns(leading: tuple[int, ...]) -> None:
    """tensorrt-features.md#1.32a, 1.32c: N may be no dimension, one, or several, of inputs, states, lengths and
    outputs.
    """
    steps, size, count = 4, 3, int(np.prod(leading, dtype=int))
    x, hidden = numbers(*leading, steps, 5), numbers(*leading, 1, size) + 1
    weights = [numbers(size, 5), numbers(size, size)]
    network, logger = new_network(), CollectingLogger()
    layer = network.add_rnn_v2(network.add_input("x", trt.float32, x.shape), 1, size, steps, trt.RNNOperation.TANH)
    layer.hidden_state = network.add_input("h", trt.float32, hidden.shape)
    layer.seq_lengths = network.add_input("n", trt.int32, leading)
    for is_input, one in zip((True, False), weights, strict=True):
        assert layer.set_weights_for_gate(0, trt.RNNGateType.INPUT, is_input, one)
    for index in range(2):
        layer.get_output(index).name = f"y{index}"
        network.mark_output(layer.get_output(index))
    lengths = np.arange(count, dtype=np.int32).reshape(leading) % steps + 1
    found = built(network, cpu_config(logger), logger).engine.run({"x": x, "h": hidden, "n": lengths})
    state = hidden.reshape(count, size)
    data = np.zeros((count, steps, size), np.float32)
    for step in range(steps):
        following = np.tanh(x.reshape(count, steps, 5)[:, step] @ weights[0].T + state @ weights[1].T)
        inside = (step < lengths.reshape(count))[:, None]
        data[:, step], state = np.where(inside, following, 0), np.where(inside, following, state)
    np.testing.assert_allclose(found["y0"], data.reshape(*leading, steps, size), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["y1"], state.reshape(*leading, 1, size), rtol=1e-5, atol=1e-6)


def test_transpositions_of_a_shuffle_name_all_axes() -> None:
    """tensorrt-features.md#1.37a: unset they leave eight axes as they are; what a shuffle shows another one takes."""
    network, x = new_network(), numbers(2, 3)
    layer = network.add_shuffle(network.add_input("x", trt.float32, x.shape))
    assert layer.first_transpose == tuple(range(8))
    layer.second_transpose = layer.first_transpose
    layer.first_transpose = (1, 0)
    np.testing.assert_array_equal(result(network, layer, x=x), x.T)


def test_a_run_that_contradicts_an_assertion() -> None:
    """tensorrt-features.md#1.2b: code 7, with the condition as it was computed, and no results."""
    logger = CollectingLogger()
    network = new_network(logger)
    a, b = (network.add_input(name, trt.float32, (-1,)) for name in "ab")
    left, right = (network.add_shape(one).get_output(0) for one in (a, b))
    equal = network.add_elementwise(left, right, trt.ElementWiseOperation.EQUAL).get_output(0)
    network.add_assertion(equal, "they differ.")
    network.mark_output(network.add_concatenation([a, b]).get_output(0))
    ranges = {name: ((1,), (3,), (8,)) for name in "ab"}
    context = built(network, cpu_config(logger, shapes=ranges), logger).create_execution_context()
    assert run(context, {"a": numbers(3), "b": numbers(3)}) is not None
    assert run(context, {"a": numbers(3), "b": numbers(4)}) is None
    assert "7: [" in logger.text()
    assert "condition[0] is false: (EQUAL (# 0 (SHAPE a)) (# 0 (SHAPE b))). they differ." in logger.text()
    assert "Condition '==' violated: 3 != 4. Instruction: CHECK_EQUAL 3 4." in logger.text()


def test_nothing_where_weights_should_be() -> None:
    """tensorrt-features.md#31.3: a count without an address; with one the numbers are read there."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (1, 1, 2, 2))
    assert network.add_convolution_nd(x, 1, (1, 1), trt.Weights(trt.float32, 0, 1)) is None
    assert "kernel weights has non-zero count but null values" in logger.text()
    kernel = np.array([2], np.float32)
    layer = network.add_convolution_nd(x, 1, (1, 1), trt.Weights(trt.float32, kernel.ctypes.data, 1))
    np.testing.assert_array_equal(result(network, layer, x=np.ones((1, 1, 2, 2), np.float32)), np.full((1, 1, 2, 2), 2))


@pytest.mark.parametrize("given", ["stride", "all"])
def test_a_slice_by_a_stride_of_the_run(given: str) -> None:
    """tensorrt-features.md#1.38a: steps that an input gives, forward, backward and none, alone or with start and size.
    """
    logger = CollectingLogger()
    network, x = new_network(logger), numbers(6, 8)
    layer = network.add_slice(network.add_input("x", trt.float32, x.shape), (4, 2), (2, 3), (1, 1))
    inputs = {"start": 1, "size": 2, "stride": 3} if given == "all" else {"stride": 3}
    profile = trt.Builder(logger).create_optimization_profile()
    for name, place in inputs.items():
        layer.set_input(place, network.add_input(name, trt.int32, (2,)))
        profile.set_shape_input(name, (-8, -8) if name == "stride" else (0, 0), (1, 1), (8, 8))
    network.mark_output(layer.get_output(0))
    config = cpu_config(logger)
    config.add_optimization_profile(profile)
    context = built(network, config, logger).create_execution_context()
    for start, size, stride in (((4, 2), (2, 3), (1, 2)), ((4, 2), (2, 3), (-2, 0)), ((5, 7), (3, 4), (-2, -1))):
        if given == "stride" and start != (4, 2):
            continue
        lists = {"stride": stride, "start": start, "size": size}
        feeds = {"x": x} | {name: np.array(lists[name], np.int32) for name in inputs}
        found = run(context, feeds)
        assert found is not None, logger.text()
        places = [first + step * np.arange(count) for first, step, count in zip(start, stride, size, strict=True)]
        np.testing.assert_array_equal(next(iter(found.values())), x[np.ix_(*places)])


@pytest.mark.parametrize(
    ("shape", "count", "text"),
    [
        ((2, 3, 4), 3, "The input to the Scale Layer is required to have a minimum of 3 dimensions behind the batch"),
        (
            (1, 3, 2, 2),
            2,
            "Invalid scale mode, nbWeights: 2: shift weights has count 2 but [3] was expected",
        ),
    ],
)
def test_what_a_scale_is_refused(shape: tuple[int, ...], count: int, text: str) -> None:
    """tensorrt-features.md#31.16: in the words that the parser of UFF had; a right one runs."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, ones = network.add_input("x", trt.float32, shape), np.ones(count, np.float32)
    network.mark_output(network.add_scale(x, trt.ScaleMode.CHANNEL, ones, ones, ones).get_output(0))
    assert text in refused(network, logger)
    network = new_network(logger)
    x, twos = network.add_input("x", trt.float32, (1, 3, 2, 2)), np.full(3, 2, np.float32)
    layer = network.add_scale(x, trt.ScaleMode.CHANNEL, twos, twos, np.ones(3, np.float32))
    np.testing.assert_array_equal(result(network, layer, x=np.ones((1, 3, 2, 2), np.float32)), np.full((1, 3, 2, 2), 4))
