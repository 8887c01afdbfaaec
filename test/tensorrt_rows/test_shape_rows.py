"""Rows of A6 and A12: profiles, names of dimensions, inputs that are read as shapes, outputs whose sizes data tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built, cpu_config, run

import mlirt as trt

WARNING = trt.Severity.WARNING


def doubled(shape: Sequence[int], logger: CollectingLogger) -> trt.INetworkDefinition:
    """y = x + x."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, shape)
    y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def reshaped(dtype: trt.DataType, count: int, logger: CollectingLogger) -> trt.INetworkDefinition:
    """x in a shape that an input gives."""
    network = new_network(logger)
    layer = network.add_shuffle(network.add_input("x", trt.float32, (12,)))
    layer.set_input(1, network.add_input("s", dtype, (count,)))
    network.mark_output(layer.get_output(0))
    return network


def values_config(logger: CollectingLogger, count: int) -> trt.IBuilderConfig:
    config, profile = cpu_config(logger), trt.Builder(logger).create_optimization_profile()
    profile.set_shape_input("s", [1] * count, [3] * count, [12] * count)
    config.add_optimization_profile(profile)
    return config


def flattened(logger: CollectingLogger) -> tuple[trt.INetworkDefinition, dict[str, trt.ITensor]]:
    """What is computed with the shape of n x 3 x 8 x 8: a reshape, a slice, a resize and numbers of a known count."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 3, 8, 8))
    shape = network.add_shape(x).get_output(0)

    def length(axis: int) -> trt.ITensor:
        return network.add_gather(shape, constant(network, np.array([axis], np.int32)), 0).get_output(0)

    def joined(*parts: trt.ITensor | int) -> trt.ITensor:
        tensors = [constant(network, np.array([p], np.int32)) if isinstance(p, int) else p for p in parts]
        return network.add_concatenation(tensors).get_output(0)

    inner = network.add_slice(shape, (1,), (3,), (1,)).get_output(0)
    volume = network.add_reduce(inner, trt.ReduceOperation.PROD, 1, True).get_output(0)
    flat, image = network.add_shuffle(x), network.add_resize(x)
    part = network.add_slice(x, (0,) * 4, (1,) * 4, (1,) * 4)
    flat.set_input(1, joined(length(0), volume))
    part.set_input(2, joined(length(0), length(1), 4, 4))
    image.set_input(1, joined(length(0), length(1), 16, 16))
    count = network.add_fill((1,), trt.FillOperation.LINSPACE)
    for index, given in ((0, length(1)), (1, np.array(0, np.float32)), (2, np.array([1], np.float32))):
        count.set_input(index, given if isinstance(given, trt.ITensor) else constant(network, given))
    layers = {"flat": flat, "part": part, "image": image, "count": count}
    tensors = {name: layer.get_output(0) for name, layer in layers.items()}
    for name, tensor in tensors.items():
        tensor.name = name
        network.mark_output(tensor)
    return network, tensors


def test_lengths_that_are_known_in_a_shape_of_the_run() -> None:
    """tensorrt-features.md#6.7: the network tells them at once, so that layers which need a number can be added, and
    the engine has them.
    """
    logger = CollectingLogger()
    network, tensors = flattened(logger)
    known = {"flat": (-1, 192), "part": (-1, 3, 4, 4), "image": (-1, 3, 16, 16), "count": (3,)}
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == known
    dense = network.add_convolution_nd(tensors["part"], 2, (4, 4), np.ones((2, 3, 4, 4), np.float32)).get_output(0)
    assert dense.shape == (-1, 2, 1, 1)
    engine = built(network, cpu_config(logger, shapes={"x": ((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))}), logger)
    assert {name: tuple(engine.get_tensor_shape(name)) for name in known} == known
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    found = run(engine.create_execution_context(), {"x": x})
    assert found is not None
    np.testing.assert_array_equal(found["flat"], x.reshape(2, 192))
    np.testing.assert_array_equal(found["part"], x[:, :, :4, :4])
    np.testing.assert_array_equal(found["count"], [0, 1, 2])


def test_a_profile_that_leaves_no_choice() -> None:
    """tensorrt-features.md#12.9, 12.10: the engine says -1 all the same, a context needs the shape, which is held
    against the range.
    """
    logger = CollectingLogger()
    config = cpu_config(logger, shapes={"x": ((2, 3), (2, 3), (2, 3))})
    engine = built(doubled((-1, 3), logger), config, logger)
    context = engine.create_execution_context()
    assert (engine.get_tensor_shape("x"), context.infer_shapes()) == ((-1, 3), ["x"])
    assert not context.set_input_shape("x", (3, 3))
    assert "exceed min ~ max range at index 0, maximum shape in profile is 2" in logger.text()
    found = run(context, {"x": np.ones((2, 3), np.float32)})
    assert found is not None
    np.testing.assert_array_equal(found["y"], np.full((2, 3), 2))


def test_the_deprecated_way_to_choose_a_profile() -> None:
    """tensorrt-features.md#12.8: a line in the log."""
    logger = CollectingLogger()
    config = cpu_config(logger, shapes={"x": ((1,), (2,), (3,))})
    context = built(doubled((-1,), logger), config, logger).create_execution_context()
    with pytest.warns(DeprecationWarning, match="Use set_optimization_profile_async instead"):
        context.active_optimization_profile = 0
    assert "use setOptimizationProfileAsync instead" in logger.text(WARNING)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_binding_of_another_profile() -> None:
    """tensorrt-features.md#12.17: stands for that of the active one, with a warning."""
    logger = CollectingLogger()
    config = cpu_config(logger, shapes={"x": ((1,), (2,), (3,))})
    second = trt.Builder(logger).create_optimization_profile()
    second.set_shape("x", (4,), (5,), (6,))
    config.add_optimization_profile(second)
    context = built(doubled((-1,), logger), config, logger).create_execution_context()
    assert context.set_binding_shape(0, (3,))
    assert not logger.text(WARNING)
    assert context.set_optimization_profile_async(1, 0)
    assert context.set_binding_shape(0, (6,))
    assert context.get_binding_shape(3) == (6,)
    (line,) = logger.text(WARNING).splitlines()
    assert line == "binding 0 belongs to optimization profile 0, and 1 is active: binding 2 is taken"


@pytest.mark.parametrize(
    ("shapes", "ranges", "text"),
    [
        (((2, 3), (4, 3)), None, "x has 2 to 2, and y has 4 to 4"),
        (((-1, 3), (-1, 3)), ((1, 4), (5, 7)), "x has 1 to 4, and y has 5 to 7"),
    ],
)
def test_dimensions_of_one_name(
    shapes: Sequence[Sequence[int]], ranges: Sequence[Sequence[int]] | None, text: str
) -> None:
    """tensorrt-features.md#12.19: lengths that can never be equal are refused by their name."""
    logger = CollectingLogger()
    network = new_network(logger)
    inputs = [network.add_input(name, trt.float32, shape) for name, shape in zip("xy", shapes, strict=True)]
    for one in inputs:
        one.set_dimension_name(0, "batch")
    network.mark_output(network.add_concatenation(inputs).get_output(0))
    given = None
    if ranges is not None:
        given = {name: ((low, 3), (low, 3), (high, 3)) for name, (low, high) in zip("xy", ranges, strict=True)}
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger, shapes=given)) is None
    assert f"the dimensions named 'batch' are equal, but {text}" in logger.text()


@pytest.mark.parametrize("dtype", [trt.int8, trt.float32, trt.bool])
def test_shapes_are_whole_numbers(dtype: trt.DataType) -> None:
    """tensorrt-features.md#12.22: others are refused, once."""
    logger = CollectingLogger()
    assert trt.Builder(logger).build_serialized_network(reshaped(dtype, 2, logger), values_config(logger, 2)) is None
    (line,) = logger.text().splitlines()
    assert f"s: an input that is read as a shape is Int32, not {dtype.name}" in line


def test_shapes_are_short() -> None:
    """tensorrt-features.md#6.4: 64 elements at most."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, s = network.add_input("x", trt.float32, (12,)), network.add_input("s", trt.int32, (65,))
    layer = network.add_shuffle(x)
    layer.set_input(1, network.add_slice(s, (0,), (2,), (1,)).get_output(0))
    network.mark_output(layer.get_output(0))
    assert trt.Builder(logger).build_serialized_network(network, values_config(logger, 65)) is None
    assert "s: an input that is read as a shape has at most 64 elements" in logger.text()


def test_values_that_a_profile_forbids() -> None:
    """tensorrt-features.md#12.12: also where they are given by their address."""
    logger = CollectingLogger()
    context = built(reshaped(trt.int32, 2, logger), values_config(logger, 2), logger).create_execution_context()
    x = np.arange(12, dtype=np.float32)
    found = run(context, {"x": x, "s": np.array([4, 3], np.int32)})
    assert found is not None
    np.testing.assert_array_equal(next(iter(found.values())), x.reshape(4, 3))
    assert run(context, {"x": x, "s": np.array([0, 13], np.int32)}) is None


class Allocator(trt.IOutputAllocator):
    """Notes what it is asked and told."""

    def __init__(self, size: int = 4096) -> None:
        super().__init__()
        self.memory = np.zeros(size, np.uint8)
        self.calls: list[tuple[str, object]] = []

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        self.calls.append(("reallocate", size))
        return self.memory.ctypes.data if size <= self.memory.nbytes else 0

    def notify_shape(self, tensor_name: str, shape: trt.Dims) -> None:
        self.calls.append(("notify", tuple(shape)))


def places_of(x: Array, logger: CollectingLogger) -> trt.IExecutionContext:
    """The places of what is not zero, of up to 5 rows of 3."""
    network = new_network(logger)
    found = network.add_non_zero(network.add_input("x", trt.float32, (-1, 3))).get_output(0)
    found.name = "y"
    network.mark_output(found)
    config = cpu_config(logger, shapes={"x": ((1, 3), (2, 3), (5, 3))})
    context = built(network, config, logger).create_execution_context()
    assert context.get_max_output_size("y") == -1
    assert context.set_input_shape("x", x.shape)
    assert context.set_tensor_address("x", x)
    return context


def test_the_most_that_data_may_give() -> None:
    """tensorrt-features.md#12.14, 12.16: the allocator is asked for it before the run, and told the shape after it."""
    x, logger, allocator = np.array([[1, 0, 1], [0, 0, 1]], np.float32), CollectingLogger(), Allocator()
    context = places_of(x, logger)
    assert context.get_max_output_size("y") == 2 * 6 * 4
    assert context.set_output_allocator("y", allocator)
    assert context.execute_async_v3(0)
    assert allocator.calls == [("reallocate", 48), ("notify", (2, 3))]
    np.testing.assert_array_equal(allocator.memory[:24].view(np.int32).reshape(2, 3), np.nonzero(x))


def test_an_allocator_without_memory() -> None:
    """tensorrt-features.md#12.15: the run fails with its tensor's name, before anything is written."""
    logger, allocator = CollectingLogger(), Allocator(8)
    context = places_of(np.ones((2, 3), np.float32), logger)
    assert context.set_output_allocator("y", allocator)
    assert not context.execute_async_v3(0)
    assert "the output allocator gave no memory for 'y'" in logger.text()
    assert allocator.calls == [("reallocate", 48)]


def test_the_most_boxes() -> None:
    """tensorrt-features.md#12.14: those of all classes, as many as are kept of one at most."""
    logger = CollectingLogger()
    network = new_network(logger)
    boxes, scores = network.add_input("b", trt.float32, (2, 30, 4)), network.add_input("s", trt.float32, (2, 30, 3))
    layer = network.add_nms(boxes, scores, constant(network, np.array(7, np.int32)))
    layer.get_output(0).name = "kept"
    network.mark_output(layer.get_output(0))
    context = built(network, cpu_config(logger), logger).create_execution_context()
    assert context.get_max_output_size("kept") == 2 * 3 * 7 * 3 * 4
