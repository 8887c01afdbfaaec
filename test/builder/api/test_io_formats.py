"""Formats of inputs and outputs, from `allowed_formats` to the bytes that a run writes (section 5)."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from onnx import helper
from onnx_models import model_of, numbers, write_model

import mlirt
import mlirt as trt
from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.plan_file import plan_bytes, read_plan
from mlirt.tensor_formats import FORMATS, LAYOUTS, check_format, pack, unpack

Array = np.ndarray[Any, np.dtype[Any]]
FORMAT, FLAG = trt.TensorFormat, trt.BuilderFlag
RNG = np.random.default_rng(0)
DTYPES = {"float32": trt.float32, "float16": trt.float16, "int8": trt.int8, "int32": trt.int32}
PAIRS = [(name, dtype) for name, layout in LAYOUTS.items() for dtype in layout.holds]


def bit(format: str) -> int:
    return 1 << int(FORMAT[format])


def twice(shape: tuple[int, ...], dtype: trt.DataType, logger: trt.ILogger) -> trt.INetworkDefinition:
    """`y = x + x` of any batch."""
    network = new_network(logger)
    x = network.add_input("x", dtype, (-1, *shape[1:]))
    layer = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    layer.name, layer.get_output(0).name = "twice", "y"
    network.mark_output(layer.get_output(0))
    if dtype is trt.int8:  # bytes need a scale (tensorrt-features.md#5.10): this one is 1
        x.dynamic_range = layer.get_output(0).dynamic_range = (-127, 127)
        layer.get_output(0).dtype = trt.int8
    return network


def convolved(channels: int, maps: int, dtype: trt.DataType) -> trt.INetworkDefinition:
    network = new_network()
    x = network.add_input("x", dtype, (-1, channels, 8, 8))
    kernel = RNG.integers(-2, 3, (maps, channels, 3, 3)).astype(trt.nptype(dtype))
    layer = network.add_convolution_nd(x, maps, (3, 3), kernel)
    layer.padding_nd, layer.name, layer.get_output(0).name = (1, 1), "conv", "y"
    network.mark_output(layer.get_output(0))
    return network


def plan_of(
    network: trt.INetworkDefinition, logger: trt.ILogger, *flags: trt.BuilderFlag, target: str = "cpu"
) -> bytes | None:
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.target = target
    for flag in flags:
        config.set_flag(flag)
    x = network.get_input(0)
    if -1 in x.shape:
        profile = builder.create_optimization_profile()
        profile.set_shape(x.name, *((batch, *list(x.shape)[1:]) for batch in (1, 2, 4)))
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    return None if plan is None else bytes(plan)


def built(network: trt.INetworkDefinition, *flags: trt.BuilderFlag) -> trt.ICudaEngine:
    logger = CollectingLogger()
    plan = plan_of(network, logger, *flags)
    assert plan is not None, logger.text()
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None, logger.text()
    return engine


def run(engine: trt.ICudaEngine, stored: Array, shape: tuple[int, ...]) -> bytes:
    """What a run writes to memory that was full of ones."""
    context = engine.create_execution_context()
    assert context.set_input_shape("x", shape)
    found = np.full(context.get_max_output_size("y"), 0xFF, np.uint8)
    assert context.set_tensor_address("x", stored.ctypes.data)
    assert context.set_tensor_address("y", found.ctypes.data)
    assert context.execute_async_v3(0)
    return found.tobytes()


def layers(engine: trt.ICudaEngine) -> list[str]:
    return [str(record["name"]) for record in engine.engine.layers]


@pytest.mark.parametrize(("format", "dtype"), PAIRS)
def test_every_format_of_inputs_and_outputs(format: str, dtype: str) -> None:
    """tensorrt-features.md#5.1, 5.3, 5.4 and 5.9: padding is zero, shapes are those without it, numbers do not depend
    on formats.
    """
    layout, shape = LAYOUTS[format], (2, 3, 4, 5, 6) if LAYOUTS[format].from_end == 4 else (2, 3, 4, 5)
    network = twice(shape, DTYPES[dtype], CollectingLogger())
    x, y = network.get_input(0), network.get_output(0)
    x.allowed_formats = y.allowed_formats = bit(format)
    engine = built(network)
    array = RNG.integers(-20, 20, shape).astype(dtype)
    assert run(engine, pack(array, format), shape) == pack(array + array, format).tobytes()
    for name in ("x", "y"):
        assert engine.get_tensor_format(name) is FORMAT[format]
        assert tuple(engine.get_tensor_shape(name)) == (-1, *shape[1:])
        assert engine.get_tensor_vectorized_dim(name) == (-1 if layout.lanes == 1 else 1)
        assert engine.get_tensor_components_per_element(name) == (-1 if layout.lanes == 1 else layout.lanes)
        assert engine.get_tensor_bytes_per_component(name) == np.dtype(dtype).itemsize
        assert engine.get_tensor_format_desc(name).endswith(f"(k{format})")
    assert [list(one) for one in engine.get_tensor_profile_shape("x", 0)] == [[k, *shape[1:]] for k in (1, 2, 4)]
    context = engine.create_execution_context()
    context.set_input_shape("x", shape)
    assert tuple(context.get_tensor_strides("x")) == layout.strides(shape)
    assert tuple(context.get_tensor_shape("y")) == shape


@pytest.mark.parametrize(("format", "dtype"), list(product(FORMATS, DTYPES)))
def test_pairs_that_are_errors(format: str, dtype: str) -> None:
    """tensorrt-features.md#5.2 and 5.11: what no format holds is an error of the build, which names the tensor."""
    if format == "LINEAR" or dtype in getattr(LAYOUTS.get(format), "holds", ()):
        return check_format("x", format, dtype, (1, 3, 4, 5, 6))
    logger = CollectingLogger()
    network = twice((2, 3, 4, 5, 6), DTYPES[dtype], logger)
    network.get_input(0).allowed_formats = bit(format)
    assert plan_of(network, logger) is None
    assert f"x: the format {format} is for" in logger.text()


def test_of_several_formats_one_that_is_possible() -> None:
    """tensorrt-features.md#5.1."""
    network = twice((1, 3, 4, 5), trt.float32, CollectingLogger())
    network.get_input(0).allowed_formats = bit("CHW2") | bit("CHW32") | bit("DLA_LINEAR")
    network.get_output(0).allowed_formats = bit("CHW32") | bit("LINEAR")
    engine = built(network)
    assert engine.get_tensor_format("x") is FORMAT.CHW32
    assert engine.get_tensor_format("y") is FORMAT.LINEAR


def test_copies_bear_the_names_of_layers() -> None:
    """tensorrt-features.md#5.8."""
    network = twice((1, 3, 4, 5), trt.float16, CollectingLogger())
    network.get_input(0).allowed_formats, network.get_output(0).allowed_formats = bit("HWC8"), bit("CHW2")
    assert layers(built(network)) == [
        "Reformatting CopyNode for Input Tensor 0 to twice",
        "twice",
        "Reformatting CopyNode for Output Tensor 0 to twice",
    ]


@pytest.mark.parametrize(("given", "taken", "dtype"), [("CHW32", "HWC", "float32"), ("HWC8", "CHW2", "float16")])
def test_convolutions_between_formats(given: str, taken: str, dtype: str) -> None:
    """tensorrt-features.md#5.9: layouts of the engine's own lie between."""
    network = convolved(35, 20, DTYPES[dtype])
    array = RNG.integers(-3, 4, (2, 35, 8, 8)).astype(dtype)
    expected = run(built(network), array, array.shape)
    network.get_input(0).allowed_formats, network.get_output(0).allowed_formats = bit(given), bit(taken)
    found = np.frombuffer(run(built(network), pack(array, given), array.shape), dtype)
    stored = LAYOUTS[taken].stored_shape((2, 20, 8, 8))
    assert unpack(found.reshape(stored), taken, 20).tobytes() == expected


def test_direct_io() -> None:
    """tensorrt-features.md#5.7: linear tensors are read where they lie; what the layers do not work on is an error of
    the build.
    """
    network = convolved(16, 16, trt.float32)
    network.get_input(0).allowed_formats = network.get_output(0).allowed_formats = bit("LINEAR")
    array = RNG.integers(-3, 4, (2, 16, 8, 8)).astype(np.float32)
    direct = built(network, FLAG.DIRECT_IO)
    assert layers(direct) == ["conv"]
    assert run(direct, array, array.shape) == run(built(network), array, array.shape)
    network.get_output(0).allowed_formats = bit("HWC")
    logger = CollectingLogger()
    assert plan_of(network, logger, FLAG.DIRECT_IO) is None
    assert "output 'y': DIRECT_IO is set, but the layers do not work on the format HWC" in logger.text()


def test_direct_io_with_channels_last_on_a_gpu() -> None:
    """tensorrt-features.md#5.7: a convolution on a GPU works in the order of HWC8, and then nothing is copied."""
    network = convolved(60, 64, trt.float16)
    network.get_input(0).allowed_formats = network.get_output(0).allowed_formats = bit("HWC8")
    logger = CollectingLogger()
    plan = plan_of(network, logger, FLAG.DIRECT_IO, FLAG.FP16, target="cuda")
    assert plan is not None, logger.text()
    assert not [one for one in read_plan(plan).manifest.layers if "Reformat" in str(one["name"])]


def test_bytes_are_numbers_by_their_range() -> None:
    """tensorrt-features.md#5.10: linear bytes need scales; 128 / 127 is one step here."""
    network = new_network()
    x = network.add_input("x", trt.int8, (1, 3, 4, 4))
    x.dynamic_range = (-128, 128)
    layer = network.add_unary(x, trt.UnaryOperation.NEG)
    layer.get_output(0).name, layer.get_output(0).dtype = "y", trt.int8
    layer.get_output(0).dynamic_range = (-64, 64)
    network.mark_output(layer.get_output(0))
    array = RNG.integers(-127, 128, (1, 3, 4, 4)).astype(np.int8)
    expected = np.clip(np.rint(array.astype(np.float64) * -2), -128, 127).astype(np.int8)
    assert run(built(network, FLAG.INT8), array, array.shape) == expected.tobytes()


def test_an_identity_that_quantises() -> None:
    """tensorrt-features.md#5.12, without a GPU: what the example of the cookbook about formats does."""
    network = new_network()
    layer = network.add_identity(network.add_input("x", trt.float32, (-1, 3, 8, 8)))
    output = layer.get_output(0)
    output.dtype, output.dynamic_range, output.allowed_formats = trt.int8, (-128, 128), bit("CHW4")
    layer.set_output_type(0, trt.int8)
    output.name = "y"
    network.mark_output(output)
    array = (np.arange(1, 193, dtype=np.float32) / 192 * 128).reshape(1, 3, 8, 8)
    expected = np.rint(array * np.float32(127 / 128)).astype(np.int8)
    engine = built(network, FLAG.INT8)
    assert run(engine, array, array.shape) == pack(expected, "CHW4").tobytes()
    assert engine.get_tensor_format_desc("y") == "Four wide channel vectorized row major Int8 format (kCHW4)"


def test_arrays_by_name_need_not_be_packed() -> None:
    """`mlirt.load` takes and gives tensors by their shapes."""
    network = twice((1, 3, 4, 5), trt.float16, CollectingLogger())
    network.get_input(0).allowed_formats, network.get_output(0).allowed_formats = bit("HWC8"), bit("CHW2")
    engine = built(network).engine
    array = RNG.integers(-20, 20, (2, 3, 4, 5)).astype(np.float16)
    assert [one.shape for one in engine.inputs] == [("x_0", 3, 4, 5)]
    np.testing.assert_array_equal(engine.run({"x": array})["y"], array + array)
    np.testing.assert_array_equal(engine.run_positional(array)[0], array + array)
    with pytest.raises(InvalidInputError, match=r"input 'x': expected shape \(x_0, 3, 4, 5\), got \(2, 4, 4, 5\)"):
        engine.run({"x": np.zeros((2, 4, 4, 5), np.float16)})


def test_a_model_reads_another_type(tmp_path: Path) -> None:
    """As TensorRT's example of formats does it: the layers of a model go on to compute in what they did."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")]
    weights = {"w": np.round(numbers(4, 3, 1, 1) * 4)}
    write_model(model_of(nodes, {"x": ("float32", [2, 3, 4, 4])}, ["y"], weights), tmp_path / "m.onnx")
    array = RNG.integers(-3, 4, (2, 3, 4, 4)).astype(np.int8)
    expected = mlirt.compile(tmp_path / "m.onnx", "reference").run({"x": array.astype(np.float32)})["y"]
    for dtype, format, reach in ((trt.float16, "HWC8", None), (trt.int8, "CHW4", 127), (trt.float32, "HWC", None)):
        network = new_network()
        assert trt.OnnxParser(network, CollectingLogger()).parse_from_file(str(tmp_path / "m.onnx"))
        x, y = network.get_input(0), network.get_output(0)
        x.dtype, x.allowed_formats, y.dtype = dtype, bit(format), trt.float16
        if reach is not None:
            x.dynamic_range = y.dynamic_range = (-reach, reach)
        engine = built(network, *[FLAG.INT8] * (reach is not None))
        assert engine.get_tensor_dtype("x") is dtype
        found = np.frombuffer(run(engine, pack(array.astype(trt.nptype(dtype)), format), array.shape), np.float16)
        if reach is None:
            np.testing.assert_array_equal(found.reshape(expected.shape), expected.astype(np.float16))
        else:  # the convolution may be one of int8, whose weights are rounded
            np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1.5)


def test_formats_in_the_log() -> None:
    """tensorrt-features.md#5.6."""
    logger = CollectingLogger()
    network = twice((1, 24, 5, 4), trt.float16, logger)
    network.get_output(0).allowed_formats = bit("HWC8")
    assert plan_of(network, logger) is not None
    text = logger.text(trt.Logger.VERBOSE)
    assert "Input x: Half(480,20,4,1)" in text
    assert "Output y: Half(60,1:8,12,3)" in text


def test_a_refitted_engine_keeps_its_formats() -> None:
    network = convolved(3, 4, trt.float32)
    network.get_output(0).allowed_formats = bit("CHW32")
    engine = built(network, FLAG.REFIT)
    array = np.ones((1, 3, 8, 8), np.float32)
    before = run(engine, array, array.shape)
    refitter = trt.Refitter(engine, CollectingLogger())
    assert refitter.set_weights("conv", trt.WeightsRole.KERNEL, np.zeros((4, 3, 3, 3), np.float32))
    assert refitter.refit_cuda_engine()
    assert run(engine, array, array.shape) == bytes(len(before))


def test_a_plan_that_says_something_else_is_refused() -> None:
    network = twice((1, 3, 4, 5), trt.float16, CollectingLogger())
    network.get_output(0).allowed_formats = bit("HWC8")
    plan = read_plan(plan_of(network, CollectingLogger()) or b"")
    for change, fault in (
        ({"format": "HWC9"}, "no tensor format"),
        ({"logical": ["x_0", 3, 4, 6]}, "does not store it"),
        ({"logical": ["x_0"]}, "no tensor of this shape"),
    ):
        manifest = json.loads(json.dumps(plan.manifest_json))
        manifest["outputs"][0].update(change)
        with pytest.raises(PlanError, match=fault):
            read_plan(plan_bytes(manifest, plan.sections, plan.weights))
