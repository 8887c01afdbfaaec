"""Names of version 8.6: layers that came with it compute what they say, and are missing where 8.5 is told."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import numpy as np
import tensorrt as trt
import mlirt

rng = np.random.default_rng(0)


def result(add, **feeds):
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    types = {"float32": trt.float32, "int32": trt.int32}
    tensors = [network.add_input(name, types[value.dtype.name], value.shape) for name, value in feeds.items()]
    layer = add(network, *tensors)
    layer.metadata = "of this layer"
    layer.get_output(0).name = "y"
    assert network.num_layers == 1
    network.mark_output(layer.get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None and layer.metadata == "of this layer"
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine.num_aux_streams == 0 and engine.hardware_compatibility_level == trt.HardwareCompatibilityLevel.NONE
    engine.create_execution_context().set_aux_streams([])
    return layer, mlirt.load(bytes(plan)).run(feeds)["y"]


x = rng.standard_normal((2, 6, 3, 4)).astype(np.float32)
layer, found = result(lambda network, x: network.add_cast(x, trt.int32), x=10 * x)
assert layer.type == trt.LayerType.CAST and isinstance(layer, trt.ICastLayer) and layer.to_type == trt.int32
assert found.dtype == np.int32 and np.array_equal(found, (10 * x).astype(np.int32))

scale, bias = (rng.standard_normal((1, 1, 3, 4)).astype(np.float32) for _ in range(2))
layer, found = result(lambda network, *given: network.add_normalization(*given, 0b1100), x=x, s=scale, b=bias)
mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 1e-5) * scale + bias, atol=2e-6)
assert layer.type == trt.LayerType.NORMALIZATION and layer.axes == 0b1100 and layer.num_groups == 1


def in_groups(network, *given):
    layer = network.add_normalization(*given, 0b1100)
    layer.num_groups, layer.epsilon = 3, 1e-3
    return layer


for count in (6, 3):
    scale, bias = (rng.standard_normal((1, count, 1, 1)).astype(np.float32) for _ in range(2))
    layer, found = result(in_groups, x=x, s=scale, b=bias)
    groups = x.reshape(2, 3, -1)
    plain = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-3)
    factor, shift = (one.reshape(1, 3, -1, 1, 1) for one in (scale, bias))
    np.testing.assert_allclose(found, (plain.reshape(2, 3, 2, 3, 4) * factor + shift).reshape(x.shape), atol=2e-6)

z, lengths = rng.standard_normal((4, 3, 2)).astype(np.float32), np.array([4, 2, 1], np.int32)
layer, found = result(lambda network, *given: network.add_reverse_sequence(*given), z=z, n=lengths)
expected = z.copy()
for number, length in enumerate(lengths):
    expected[:length, number] = z[:length, number][::-1]
assert np.array_equal(found, expected) and (layer.batch_axis, layer.sequence_axis) == (1, 0)

numbers = np.array([1, np.inf, -np.inf, np.nan], np.float32)
layer, found = result(lambda network, x: network.add_unary(x, trt.UnaryOperation.ISINF), x=numbers)
assert found.tolist() == [False, True, True, False]

logger = trt.Logger(trt.Logger.ERROR)
assert trt.Builder(logger).get_plugin_registry() is trt.get_plugin_registry()
config = trt.Builder(logger).create_builder_config()
config.set_memory_pool_limit(trt.MemoryPoolType.TACTIC_DRAM, 1 << 30)
assert config.get_memory_pool_limit(trt.MemoryPoolType.TACTIC_DRAM) == 1 << 30

config.plugins_to_serialize = []
builder, runtime = trt.Builder(logger), trt.Runtime(logger)
network = builder.create_network(1)
assert network.builder is builder
assert trt.OnnxParser(network, logger).get_used_vc_plugin_libraries() == []
for refused in (
    lambda: setattr(config, "plugins_to_serialize", ["plugins.so"]),
    lambda: runtime.load_runtime("lean.so"),
    lambda: trt.get_plugin_registry().deregister_library(0),
):
    try:
        refused()
    except mlirt.UnsupportedError as error:
        print("refused:", error)
    else:
        raise AssertionError("was accepted")
runtime.temporary_directory, runtime.engine_host_code_allowed = "/tmp", True
flags = 1 << int(trt.TempfileControlFlag.ALLOW_TEMPORARY_FILES)
assert runtime.tempfile_control_flags == flags | 1 << int(trt.TempfileControlFlag.ALLOW_IN_MEMORY_FILES)
runtime.tempfile_control_flags = flags
assert (runtime.temporary_directory, runtime.tempfile_control_flags) == ("/tmp", flags)

given = [network.add_input(name, trt.float32, (2, 6, 3)) for name in "abc"]
wrong = network.add_normalization(*given, 0)
network.mark_output(wrong.get_output(0))
assert trt.Builder(logger).build_serialized_network(network, config) is None
network = builder.create_network(1)
given = [network.add_input(name, trt.float32, shape) for name, shape in (("a", (2, 6, 3)), ("s", (6,)), ("b", (6,)))]
flat = network.add_normalization(*given, 0b100)
network.mark_output(flat.get_output(0))
assert builder.build_serialized_network(network, config) is None
print("as in 8.6")
"""
EARLIER = """
import tensorrt as trt
places = (trt.INetworkDefinition, trt, trt.LayerType, trt.ILayer)
names = ("add_cast", "INormalizationLayer", "CAST", "metadata")
print([hasattr(*pair) for pair in zip(places, names, strict=True)])
"""


def told(version: str, program: str) -> str:
    command = [sys.executable, "-m", "mlirt.as_tensorrt", "--version", version, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout.strip().splitlines()[-1]


def test_layers_of_8_6() -> None:
    assert told("8.6.1", PROGRAM) == "as in 8.6"
    assert told("10.x", PROGRAM) == "as in 8.6"


def test_8_5_has_none_of_them() -> None:
    assert told("8.5.3", EARLIER) == "[False, False, False, False]"
