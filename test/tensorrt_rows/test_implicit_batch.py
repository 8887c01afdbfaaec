"""Rows of networks with an implicit batch: tensors are those of one sample, `execute` says how many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger
from network_engines import cpu_config
from repeat_plugin import Description, array_at, registered

import mlirt as trt

MAX_BATCH = 4
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((MAX_BATCH, 3, 8, 8)).astype(np.float32)
KERNEL = RANDOM.standard_normal((4, 3, 1, 1)).astype(np.float32)
RAMP = np.arange(3, dtype=np.float32).reshape(3, 1, 1)
ONES = np.ones((2, 8, 8), np.float32)

pytestmark = pytest.mark.filterwarnings("ignore:Use :DeprecationWarning")

Layers = Callable[[trt.INetworkDefinition, trt.ITensor], trt.ILayer]


def new_network(logger: CollectingLogger) -> tuple[trt.Builder, trt.INetworkDefinition]:
    """A network without flags, of a builder with a largest batch."""
    builder = trt.Builder(logger)
    builder.max_batch_size = MAX_BATCH
    network = builder.create_network()
    assert network.has_implicit_batch_dimension
    return builder, network


def engine_of(
    builder: trt.Builder,
    network: trt.INetworkDefinition,
    logger: CollectingLogger,
    config: trt.IBuilderConfig | None = None,
) -> trt.ICudaEngine:
    plan = builder.build_serialized_network(network, config or cpu_config(logger))
    assert plan is not None, logger.text()
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None, logger.text()
    return engine


def run(engine: trt.ICudaEngine, batch: int, feeds: dict[str, Array]) -> dict[str, Array]:
    """The outputs of a batch, by `execute`."""
    context = engine.create_execution_context()
    arrays = {name: np.ascontiguousarray(one) for name, one in feeds.items()}
    for index in range(engine.num_bindings):
        name = engine.get_binding_name(index)
        if not engine.binding_is_input(index):
            kind = trt.nptype(engine.get_binding_dtype(index))
            arrays[name] = np.full((batch, *engine.get_binding_shape(index)), 7, kind)
    addresses = [arrays[engine.get_binding_name(index)].ctypes.data for index in range(engine.num_bindings)]
    assert context.execute(batch, addresses)
    return arrays


def convolution(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_convolution_nd(x, 4, (1, 1), KERNEL)


def softmax(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_softmax(x)


def reduced(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_reduce(x, trt.ReduceOperation.SUM, 1 << 1, False)


def largest(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_topk(x, trt.TopKOperation.MAX, 2, 1 << 2)


def shuffled(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    layer = network.add_shuffle(x)
    layer.first_transpose, layer.reshape_dims, layer.second_transpose = (1, 2, 0), (0, -1), (1, 0)
    return layer


def scaled(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_scale(x, trt.ScaleMode.CHANNEL, RAMP.ravel(), np.ones(3, np.float32), np.ones(3, np.float32))


def summed(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    ramp = network.add_constant(RAMP.shape, RAMP).get_output(0)
    return network.add_elementwise(x, ramp, trt.ElementWiseOperation.SUM)


def cut(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_slice(x, (0, 1, 1), (3, 4, 4), (1, 1, 2))


def enlarged(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    layer = network.add_resize(x)
    layer.shape = (3, 16, 8)
    return layer


def joined(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_concatenation([x, network.add_constant(ONES.shape, ONES).get_output(0)])


def exponentials(x: Array) -> Array:
    powers = np.exp(x)
    return powers / powers.sum(1, keepdims=True)


CASES: list[tuple[Layers, Callable[[Array], Array]]] = [
    (convolution, lambda x: np.einsum("nchw,kc->nkhw", x, KERNEL[:, :, 0, 0])),
    (softmax, exponentials),
    (reduced, lambda x: x.sum(2)),
    (largest, lambda x: -np.sort(-x, 3)[..., :2]),
    (shuffled, lambda x: x.transpose(0, 2, 3, 1).reshape(len(x), 8, 24).transpose(0, 2, 1)),
    (scaled, lambda x: x + RAMP),
    (summed, lambda x: x + RAMP),
    (cut, lambda x: x[:, :, 1:5, 1:8:2]),
    (enlarged, lambda x: x.repeat(2, 2)),
    (joined, lambda x: np.concatenate([x, np.broadcast_to(ONES, (len(x), *ONES.shape))], 1)),
]


@pytest.mark.parametrize(("layers", "expected"), CASES, ids=[layers.__name__ for layers, _ in CASES])
def test_layers_see_one_sample(layers: Layers, expected: Callable[[Array], Array]) -> None:
    """tensorrt-features.md#2.17, 13.4, 27.1: axes and shapes are without the batch, which any run up to the largest
    one chooses; a constant is part of every sample.
    """
    logger = CollectingLogger()
    builder, network = new_network(logger)
    y = layers(network, network.add_input("x", trt.float32, X.shape[1:])).get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert tuple(y.shape) == expected(X).shape[1:]
    engine = engine_of(builder, network, logger)
    assert (engine.has_implicit_batch_dimension, engine.max_batch_size) == (True, MAX_BATCH)
    assert tuple(engine.get_binding_shape("y")) == expected(X).shape[1:]
    for batch in (1, 3, MAX_BATCH):
        found = run(engine, batch, {"x": X[:batch]})["y"]
        np.testing.assert_allclose(found, expected(X[:batch]), rtol=1e-4, atol=1e-5)


def test_an_input_for_the_whole_batch() -> None:
    """tensorrt-features.md#2.17, 27.1: it comes once, is a factor of each sample, and copied where it is joined."""
    logger = CollectingLogger()
    builder, network = new_network(logger)
    x, once = (network.add_input(name, trt.float32, (2, 3)) for name in ("x", "once"))
    once.broadcast_across_batch = True
    assert (x.broadcast_across_batch, once.broadcast_across_batch) == (False, True)
    both = network.add_elementwise(x, once, trt.ElementWiseOperation.PROD).get_output(0)
    parts = network.add_concatenation([x, once])
    parts.axis = 1
    for name, tensor in (("both", both), ("parts", parts.get_output(0))):
        tensor.name = name
        network.mark_output(tensor)
    given, other = RANDOM.standard_normal((3, 2, 3)).astype(np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    found = run(engine_of(builder, network, logger), 3, {"x": given, "once": other})
    np.testing.assert_array_equal(found["both"], given * other)
    np.testing.assert_array_equal(found["parts"], np.concatenate([given, np.broadcast_to(other, (3, 2, 3))], 2))


def test_rows_of_different_lengths() -> None:
    """tensorrt-features.md#2.17, 1.28: the softmax of each row's first elements, with two dimensions for a sample."""
    logger = CollectingLogger()
    builder, network = new_network(logger)
    x, bounds = network.add_input("x", trt.float32, (2, 5)), network.add_input("bounds", trt.int32, (2, 1))
    y = network.add_ragged_softmax(x, bounds).get_output(0)
    y.name = "y"
    network.mark_output(y)
    given = RANDOM.standard_normal((3, 2, 5)).astype(np.float32)
    lengths = np.array([[[1], [5]], [[3], [2]], [[4], [4]]], np.int32)
    found = run(engine_of(builder, network, logger), 3, {"x": given, "bounds": lengths})["y"]
    powers = np.exp(given) * (np.arange(5) < lengths)
    np.testing.assert_allclose(found, powers / powers.sum(2, keepdims=True), rtol=1e-5, atol=1e-6)


def test_recurrent_layers() -> None:
    """tensorrt-features.md#2.17, 1.32: a sample is a sequence; hidden states are those of TANH."""
    logger = CollectingLogger()
    builder, network = new_network(logger)
    size, steps, width = 3, 4, 2
    x = network.add_input("x", trt.float32, (steps, width))
    layer = network.add_rnn_v2(x, 1, size, steps, trt.RNNOperation.TANH)
    weights = {True: RANDOM.standard_normal((size, width)), False: RANDOM.standard_normal((size, size))}
    for is_input, matrix in weights.items():
        layer.set_weights_for_gate(0, trt.RNNGateType.INPUT, is_input, matrix.astype(np.float32))
        layer.set_bias_for_gate(0, trt.RNNGateType.INPUT, is_input, np.zeros(size, np.float32))
    y = layer.get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert tuple(y.shape) == (steps, size)
    given = RANDOM.standard_normal((2, steps, width)).astype(np.float32)
    found = run(engine_of(builder, network, logger), 2, {"x": given})["y"]
    state = np.zeros((2, size))
    for step in range(steps):
        state = np.tanh(given[:, step] @ weights[True].T + state @ weights[False].T)
        np.testing.assert_allclose(found[:, step], state, rtol=1e-4, atol=1e-5)


class Calibrator(trt.IInt8MinMaxCalibrator):
    """Batches of a size of its own, by their addresses."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.left = size, [X[start : start + size] for start in range(0, MAX_BATCH, size)]

    def get_batch_size(self) -> int:
        return self.size

    def get_batch(self, names: Sequence[str]) -> list[int] | None:
        return [self.left.pop().ctypes.data] if self.left else None

    def read_calibration_cache(self) -> None:
        return None

    def write_calibration_cache(self, cache: memoryview) -> None:
        pass


@pytest.mark.parametrize("size", [1, 2])
def test_a_calibrator_has_batches_of_its_own(size: int) -> None:
    """tensorrt-features.md#2.17, 9.6: `get_batch_size` says how many samples a call gives."""
    logger = CollectingLogger()
    builder, network = new_network(logger)
    kernel = RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32)
    y = network.add_convolution_nd(network.add_input("x", trt.float32, X.shape[1:]), 4, (3, 3), kernel).get_output(0)
    y.name = "y"
    network.mark_output(y)
    exact = run(engine_of(builder, network, logger), MAX_BATCH, {"x": X})["y"]
    config, calibrator = cpu_config(logger, trt.BuilderFlag.INT8), Calibrator(size)
    config.int8_calibrator = calibrator
    found = run(engine_of(builder, network, logger, config), MAX_BATCH, {"x": X})["y"]
    assert not calibrator.left
    assert 0 < np.abs(found - exact).max() < 0.05 * np.abs(exact).max()


def test_what_needs_an_explicit_batch() -> None:
    """tensorrt-features.md#2.17: lengths of the run, shapes, loops and models; the log says so."""
    logger = CollectingLogger()
    builder, network = new_network(logger)
    assert network.add_input("d", trt.float32, (-1, 3)) is None
    assert "for a network with an explicit batch" in logger.text()
    x = network.add_input("x", trt.float32, (2, 3))
    network.mark_output(network.add_shape(x).get_output(0))
    assert builder.build_serialized_network(network, cpu_config(logger)) is None
    assert "SHAPE needs a network with an explicit batch" in logger.text()
    builder, network = new_network(logger)
    loop = network.add_loop()
    recurrence = loop.add_recurrence(network.add_input("x", trt.float32, (2, 3)))
    network.mark_output(loop.add_loop_output(recurrence.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    assert builder.build_serialized_network(network, cpu_config(logger)) is None
    assert "RECURRENCE needs a network with an explicit batch" in logger.text()
    parser = trt.OnnxParser(network, logger)
    assert not parser.parse(b"")
    assert "models need a network with an explicit batch" in parser.get_error(0).desc()


def test_batches_that_an_engine_does_not_take() -> None:
    """tensorrt-features.md#13.4: none, or more than the largest; and calls that are for an explicit batch."""
    logger = CollectingLogger()
    builder, network = new_network(logger)
    x = network.add_input("x", trt.float32, (2,))
    network.mark_output(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0))
    context = engine_of(builder, network, logger).create_execution_context()
    arrays = [np.ones((MAX_BATCH, 2), np.float32), np.zeros((MAX_BATCH, 2), np.float32)]
    addresses = [one.ctypes.data for one in arrays]
    for batch in (0, MAX_BATCH + 1):
        assert not context.execute(batch, addresses)
        assert f"Batch size was: {batch}, but engine max batch size was: {MAX_BATCH}" in logger.text()
    assert not context.execute_v2(addresses)
    assert "the batch of the engine is implicit" in logger.text()
    assert context.execute_async(2, addresses, 0)
    np.testing.assert_array_equal(arrays[1], [[-1, -1], [-1, -1], [0, 0], [0, 0]])


class Weighted(trt.IPluginV2Ext):
    """x times a vector, which may come once for the batch, and that vector doubled, which then is there once."""

    def __init__(self, told: list[str], takes_shared: bool) -> None:
        super().__init__()
        self.plugin_type, self.plugin_version, self.num_outputs = "Weighted", "1", 2
        self.told, self.takes_shared, self.length = told, takes_shared, 0
        self.shared = [False, False]

    def get_output_shape(self, index: int, inputs: Sequence[trt.Dims]) -> trt.Dims:
        return inputs[0]

    def supports_format(self, dtype: trt.DataType, format: trt.TensorFormat) -> bool:
        return dtype == trt.float32 and format == trt.TensorFormat.LINEAR

    def can_broadcast_input_across_batch(self, input_index: int, /) -> bool:
        self.told.append(f"can {input_index}")
        return self.takes_shared and input_index == 1

    def is_output_broadcast_across_batch(self, output_index: int, input_is_broadcasted: Sequence[bool], /) -> bool:
        self.told.append(f"is {output_index} {list(input_is_broadcasted)}")
        return output_index == 1 and input_is_broadcasted[1]

    def configure_plugin(self, *given: Any) -> None:
        self.length, self.shared = given[0][0][0], given[4]
        self.told.append(f"configure {given[4]} {given[5]} {given[7]}")

    def get_workspace_size(self, max_batch_size: int) -> int:
        return 0

    def execute_async(
        self, batch_size: int, inputs: Sequence[int], outputs: Sequence[int], workspace: int, stream_handle: int
    ) -> None:
        count = 1 if self.shared[1] else batch_size
        whole, vector = (Description((rows, self.length)) for rows in (batch_size, count))
        array_at(outputs[0], whole)[...] = array_at(inputs[0], whole) * array_at(inputs[1], vector)
        array_at(outputs[1], vector)[...] = 2 * array_at(inputs[1], vector)

    def serialize(self) -> bytes:
        return bytes([self.takes_shared])

    def clone(self) -> Weighted:
        made = Weighted(self.told, self.takes_shared)
        made.length, made.shared = self.length, self.shared
        return made


class WeightedCreator(trt.IPluginCreator):
    """Makes them again."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "Weighted"

    def create_plugin(self, name: str, field_collection: trt.PluginFieldCollection, /) -> Weighted:
        return Weighted([], takes_shared=False)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes, /) -> Weighted:
        return Weighted([], bool(serialized_plugin[0]))


@pytest.mark.parametrize("takes_shared", [False, True])
def test_plugins_say_what_is_the_same_for_all_samples(takes_shared: bool) -> None:
    """tensorrt-features.md#19.19: an input that comes once is copied for a plugin that does not take it so."""
    logger = CollectingLogger()
    builder, network = new_network(logger)
    x = network.add_input("x", trt.float32, (3,))
    vector = network.add_constant((3,), np.array([1, 2, 3], np.float32)).get_output(0)
    told: list[str] = []
    layer = network.add_plugin_v2([x, vector], Weighted(told, takes_shared))
    for index, name in enumerate(("y", "z")):
        layer.get_output(index).name = name
        network.mark_output(layer.get_output(index))
    given = RANDOM.standard_normal((3, 3)).astype(np.float32)
    with registered(WeightedCreator()):
        found = run(engine_of(builder, network, logger), 3, {"x": given})
    assert {"can 0", "can 1", f"is 0 [False, {takes_shared}]", f"is 1 [False, {takes_shared}]"} <= set(told)
    assert f"configure [False, {takes_shared}] [False, {takes_shared}] {MAX_BATCH}" in told
    np.testing.assert_array_equal(found["y"], given * np.array([1, 2, 3], np.float32))
    np.testing.assert_array_equal(found["z"], np.tile(np.array([2, 4, 6], np.float32), (3, 1)))
