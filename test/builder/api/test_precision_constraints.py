"""Layers compute in what they are asked for, or the build says why not (tensorrt-features.md#3.5, 4.1 to 4.11, 9.3,
9.4, 9.20).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config

import mlirt as trt
from mlirt.builder.api.network_build import network_plan, precision_of
from mlirt.builder.api.precision_constraints import constrain_precisions
from mlirt.builder.host import gpu_is_here
from mlirt.dialects.context import RtContext
from mlirt.dialects.layer_precisions import OBEYED, LayerPrecisions, Precision
from mlirt.dialects.locations import names
from mlirt.dialects.tensor_types import element_name, element_of
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.module import network_module
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.engine import load
from mlirt.runtime.plan_file import read_plan
from mlirt.tensorrt.reporting import Reporter

OBEY, PREFER = trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS, trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS
FP16, INT8 = trt.BuilderFlag.FP16, trt.BuilderFlag.INT8
RNG = np.random.default_rng(9)


def two_convolutions() -> trt.INetworkDefinition:
    """conv1, relu1, conv2, all in float32 as far as the network says."""
    network = new_network(CollectingLogger())
    x = network.add_input("x", trt.float32, (1, 16, 8, 8))
    for k in (1, 2):
        kernel = RNG.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
        conv = network.add_convolution_nd(x, 16, (3, 3), kernel)
        conv.name = f"conv{k}"
        conv.get_output(0).name = f"c{k}"
        x = conv.get_output(0)
        if k == 1:
            relu = network.add_activation(x, trt.ActivationType.RELU)
            relu.name = "relu1"
            x = relu.get_output(0)
            x.name = "r1"
    network.mark_output(x)
    return network


def config_with(*flags: trt.BuilderFlag, target: str = "cpu") -> tuple[trt.IBuilderConfig, CollectingLogger]:
    logger = CollectingLogger()
    config = trt.Builder(logger).create_builder_config()
    config.target = target
    for flag in flags:
        config.set_flag(flag)
    return config, logger


def formats_on_cuda(network: trt.INetworkDefinition, *flags: trt.BuilderFlag) -> dict[str, set[str]]:
    """For each layer the floating-point types that its launch reads, for a GPU that need not be here."""
    config, logger = config_with(*flags, target="cuda")
    ctx = RtContext()
    module = network_module(network, ctx)
    constrain_precisions(module, network, config, Reporter(logger), "cpu")
    run_phases(module, ctx, last="fusion", options=PipelineOptions("cuda", precision_of(config, "cuda")))
    found: dict[str, set[str]] = {}
    for op in module.walk():
        if op.name == "fused.convolution":
            found[names(op.location)[0]] = {element_name(element_of(op.operands[k].type)) for k in (0, 1)}
    return found


def test_flags_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#4.1, 4.10."""
    expected = {(): "fp32", (FP16,): "fp16", (INT8,): "int8", (INT8, FP16): "int8+fp16"}
    for flags, name in expected.items():
        assert precision_of(config_with(*flags)[0], "cpu") == name
    assert precision_of(config_with()[0], "cuda") == "tf32"
    config, _ = config_with()
    config.clear_flag(trt.BuilderFlag.TF32)
    assert precision_of(config, "cuda") == "fp32"
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert precision_of(config_with()[0], "cuda") == "fp32"


@pytest.mark.parametrize("flag", [OBEY, PREFER])
def test_constraint_survives_fusion(flag: trt.BuilderFlag) -> None:
    """tensorrt-features.md#4.4, 4.5, 4.11: conv1 is joined with its activation, and still computes in float32."""
    network = two_convolutions()
    network.get_layer(0).precision = trt.float32
    found = formats_on_cuda(network, FP16, flag)
    assert found == {"conv1": {"float32"}, "conv2": {"float16"}}


def test_type_of_an_output_counts_as_precision() -> None:
    """tensorrt-features.md#4.3."""
    network = two_convolutions()
    network.get_layer(2).set_output_type(0, trt.float32)
    assert formats_on_cuda(network, FP16, OBEY) == {"conv1": {"float16"}, "conv2": {"float32"}}


def test_type_that_whole_numbers_are_converted_to_is_no_precision() -> None:
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    network = new_network(logger)
    numbers = network.add_identity(network.add_input("mask", trt.int32, (2, 3)))
    numbers.set_output_type(0, trt.float32)
    network.mark_output(numbers.get_output(0))
    config = builder.create_builder_config()
    config.target = "cpu"
    assert builder.build_serialized_network(network, config) is not None
    assert not logger.text(trt.Severity.WARNING)


def test_without_a_flag_it_is_a_hint() -> None:
    """tensorrt-features.md#4.3: ignored with a warning, as float32 is slower."""
    network = two_convolutions()
    network.get_layer(0).precision = trt.float32
    config, logger = config_with(FP16)
    module = network_module(network, RtContext())
    constrain_precisions(module, network, config, Reporter(logger), "cpu")
    assert not module.attributes
    assert "precisions of layers are ignored" in logger.text(trt.Severity.WARNING)
    assert "conv1" in logger.text(trt.Severity.WARNING)


def test_both_flags() -> None:
    """tensorrt-features.md#3.5: OBEY counts, with a warning."""
    network = two_convolutions()
    network.get_layer(0).precision = trt.float32
    config, logger = config_with(OBEY, PREFER)
    module = network_module(network, RtContext())
    constrain_precisions(module, network, config, Reporter(logger), "cpu")
    assert OBEYED in module.attributes
    assert "OBEY counts" in logger.text(trt.Severity.WARNING)
    conv = next(op for op in module.walk() if op.name == "trt.convolution")
    assert LayerPrecisions(module).of(conv) is Precision.FP32


@pytest.mark.parametrize(("precision", "flag"), [(trt.float16, "FP16"), (trt.int8, "INT8")])
def test_format_that_no_flag_permits(precision: trt.DataType, flag: str) -> None:
    """tensorrt-features.md#4.5, 4.6."""
    network = two_convolutions()
    network.get_layer(0).precision = precision
    reason = f"conv1: precision {precision.name} is set, but BuilderFlag.{flag} is not"
    config, logger = config_with(OBEY)
    with pytest.raises(InvalidModelError, match=reason):
        network_plan(network, config, Reporter(logger))
    builder = trt.Builder(logger)
    assert builder.build_serialized_network(network, config) is None
    assert reason in logger.text()
    config, logger = config_with(PREFER)
    assert network_plan(network, config, Reporter(logger))
    assert reason in logger.text(trt.Severity.WARNING)


def test_format_that_the_target_has_not() -> None:
    """tensorrt-features.md#4.4, 4.5, 21.5, 31.12: a CPU computes half precision in float32; OBEY forbids that."""
    network = two_convolutions()
    network.get_layer(0).precision = trt.float16
    config, logger = config_with(FP16, OBEY)
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    why = "Network needs native FP16 and platform does not have native FP16: layer conv1 computes in f32, but fp16 was"
    assert why in logger.text()
    config, logger = config_with(FP16, PREFER)
    assert trt.Builder(logger).build_serialized_network(network, config) is not None
    assert why in logger.text(trt.Severity.WARNING)
    assert not logger.text()


def test_half_tensors_on_a_platform_without() -> None:
    """tensorrt-features.md#21.5, 31.12: a warning; the numbers are right, as float32 holds each half."""
    assert not trt.Builder(trt.Logger()).platform_has_fast_fp16 or gpu_is_here()
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float16, (3,))
    network.mark_output(network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0))
    engine = built(network, cpu_config(logger, FP16), logger)
    warned = logger.text(trt.Severity.WARNING)
    assert "Network needs native FP16 and platform does not have native FP16: x, " in warned
    found = engine.engine.run({"x": np.array([1, 2.5, 40000], np.float16)})
    np.testing.assert_array_equal(next(iter(found.values())), np.array([2, 5, np.inf], np.float16))


def test_precision_and_output_that_contradict() -> None:
    network = two_convolutions()
    network.get_layer(0).precision = trt.float32
    network.get_layer(0).set_output_type(0, trt.float16)
    config, logger = config_with(FP16, OBEY)
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "conv1: precision FLOAT with an output of HALF: no implementation" in logger.text()


def test_a_half_layer_with_a_float_output_has_a_cast() -> None:
    """tensorrt-features.md#4.9: the launches are those that the precision of the layer alone gives."""
    layers: list[object] = []
    for output in (None, trt.float32):
        network = two_convolutions()
        network.get_layer(0).precision = trt.float16
        if output is not None:
            network.get_layer(0).set_output_type(0, output)
        config, logger = config_with(FP16, OBEY, target="cuda")
        plan = trt.Builder(logger).build_serialized_network(network, config)
        assert plan is not None, logger.text()
        layers.append(read_plan(bytes(plan)).manifest_json["layers"])
    assert layers[0] == layers[1]
    assert "float16" in str(layers[1])


def test_int8_needs_ranges() -> None:
    """tensorrt-features.md#4.6, 9.4."""
    network = two_convolutions()
    config, logger = config_with(INT8)
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "no scaling factors detected" in logger.text()


def integer_layers(network: trt.INetworkDefinition, *flags: trt.BuilderFlag) -> set[str]:
    """The names of convolutions that read bytes in an int8 build with dynamic ranges for all tensors."""
    for one in (network.get_input(0), *(network.get_layer(k).get_output(0) for k in range(3))):
        one.dynamic_range = (-4, 4)
    config, logger = config_with(INT8, *flags)
    builder = trt.Builder(logger)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None
    x = RNG.standard_normal((1, 16, 8, 8)).astype(np.float32)
    y = np.empty((1, 16, 4, 4), np.float32)
    assert engine.create_execution_context().execute_v2([x.ctypes.data, y.ctypes.data])
    ctx = RtContext()
    module = network_module(network, ctx)
    reporter = Reporter(logger)
    constrain_precisions(module, network, config, reporter, "cpu")
    from mlirt.passes.quantization.tensor_ranges import set_ranges

    set_ranges(module, dict.fromkeys(("x", "c1", "r1", "c2"), 4.0))
    run_phases(module, ctx, last="quantization", options=PipelineOptions("cpu", "int8"))
    convolutions = [op for op in module.walk() if op.name == "trt.convolution"]
    return {names(op.location)[0] for op in convolutions if "int8" in element_name(element_of(op.operands[0].type))}


def test_ranges_of_tensors_make_bytes() -> None:
    """tensorrt-features.md#4.8, 9.20: the last convolution reads bytes and gives float32."""
    assert integer_layers(two_convolutions()) == {"conv1", "conv2"}


def test_layer_that_stays_float_in_an_int8_build() -> None:
    """tensorrt-features.md#4.5, 4.11."""
    network = two_convolutions()
    network.get_layer(0).precision = trt.float32
    assert integer_layers(network, OBEY) == {"conv2"}


def test_quantize_layers_need_the_flag() -> None:
    """tensorrt-features.md#9.3."""
    network = new_network()
    x = network.add_input("x", trt.float32, (4,))
    scale = network.add_constant((), np.array(0.5, np.float32)).get_output(0)
    codes = network.add_quantize(x, scale).get_output(0)
    network.mark_output(network.add_dequantize(codes, scale).get_output(0))
    config, logger = config_with()
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "BuilderFlag.INT8 is not set" in logger.text()
    config, logger = config_with(INT8)
    assert trt.Builder(logger).build_serialized_network(network, config) is not None


class NormalImages(trt.IInt8EntropyCalibrator2):
    """Two batches of numbers for the network of two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self._left = [RNG.standard_normal((1, 16, 8, 8)).astype(np.float32) for _ in range(2)]

    def get_batch_size(self) -> int:
        return 1

    def get_batch(self, names: Sequence[str]) -> list[np.ndarray] | None:
        return [self._left.pop()] if self._left else None

    def read_calibration_cache(self) -> bytes | None:
        return None

    def write_calibration_cache(self, cache: memoryview) -> None:
        """Nothing is kept."""


@pytest.mark.parametrize("wanted", [trt.int8, trt.float16, trt.float32])
@pytest.mark.parametrize("flag", [OBEY, PREFER])
def test_calibration_is_not_held_to_constraints(flag: trt.BuilderFlag, wanted: trt.DataType) -> None:
    """tensorrt-features.md#4.5, 9.4: the calibrator has to run, and the network that it observes is float32 throughout.
    """
    network = two_convolutions()
    network.get_layer(0).precision = wanted
    config, logger = config_with(INT8, FP16, flag)
    config.int8_calibrator = NormalImages()
    plan = trt.Builder(logger).build_serialized_network(network, config)
    if wanted is trt.float16:  # a CPU has none: that is a fault of the engine, which is said once
        texts = logger.text() if flag is OBEY else logger.text(trt.Severity.WARNING)
        assert texts.count("computes in f32, but fp16 was asked for") == 1
        return
    assert plan is not None, logger.text()
    assert not logger.text(trt.Severity.WARNING)
    layers = [record for record in read_plan(bytes(plan)).manifest.layers if record["family"] == "convolution"]
    read = {str(one["name"]): str(one["inputs"]) for one in layers}
    assert {name.split()[0]: "int8" in text for name, text in read.items()} == {
        "conv1": wanted is trt.int8,
        "conv2": True,
    }


@pytest.mark.parametrize("first", ["quantize", "dequantize"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_conversion_at_the_border_alone(first: str, target: str) -> None:
    """tensorrt-features.md#9.3, 10.1, 10.21: a quantize layer that feeds an output, a dequantize layer that reads an
    input.
    """
    network = new_network()
    x = network.add_input("x", trt.float32 if first == "quantize" else trt.int8, (4,))
    scale = network.add_constant((), np.array(0.5, np.float32)).get_output(0)
    layer = network.add_quantize(x, scale) if first == "quantize" else network.add_dequantize(x, scale)
    network.mark_output(layer.get_output(0))
    config, logger = config_with(target=target)
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "BuilderFlag.INT8 is not set" in logger.text()
    config, logger = config_with(INT8, target=target)
    plan = trt.Builder(logger).build_serialized_network(network, config)
    assert plan is not None, logger.text()
    if target == "cpu":
        numbers = np.array([0.25, 0.75, -3, 100], np.float32)
        given = numbers if first == "quantize" else np.array([1, 2, -6, 127], np.int8)
        (found,) = load(plan).run({"x": given}).values()
        np.testing.assert_array_equal(found, [0, 2, -6, 127] if first == "quantize" else [0.5, 1, -3, 63.5])


def test_networks_of_floats_still_need_ranges() -> None:
    """tensorrt-features.md#9.4: bytes that are an image, and no quantize layer, say nothing of the convolutions behind
    them.
    """
    network = new_network()
    x = network.add_input("x", trt.uint8, (1, 3, 4, 4))
    numbers = network.add_identity(x)
    numbers.set_output_type(0, trt.float32)
    conv = network.add_convolution_nd(numbers.get_output(0), 1, (1, 1), np.ones((1, 3, 1, 1), np.float32))
    network.mark_output(conv.get_output(0))
    config, logger = config_with(INT8)
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "Calibration failure occurred with no scaling factors detected" in logger.text()
