"""Names that came with 8.6 are there where it is told, and not before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_NAMES = """
import numpy as np, tensorrt as trt
print(hasattr(trt, "HardwareCompatibilityLevel"), hasattr(trt, "OnnxParserFlag"), hasattr(trt.BuilderFlag, "FP8"))
lines = []
class Log(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
    def log(self, severity, text):
        lines.append(text)
log = Log()
builder = trt.Builder(log)
config = builder.create_builder_config()
network = builder.create_network(1)
parser = trt.OnnxParser(network, log)
print([hasattr(config, name) for name in
       ("builder_optimization_level", "max_aux_streams", "hardware_compatibility_level")], hasattr(parser, "flags"))
"""
_SETTINGS = """
assert (config.builder_optimization_level, config.max_aux_streams) == (3, -1)
for level in range(6):
    config.builder_optimization_level = level
    assert config.builder_optimization_level == level
try:
    config.builder_optimization_level = 6
except ValueError as error:
    print(error)
config.max_aux_streams = 2
parser.set_flag(trt.OnnxParserFlag.NATIVE_INSTANCENORM)
assert config.max_aux_streams == 2 and parser.get_flag(trt.OnnxParserFlag.NATIVE_INSTANCENORM) and parser.flags == 1
parser.clear_flag(trt.OnnxParserFlag.NATIVE_INSTANCENORM)
assert not parser.flags
config.hardware_compatibility_level = trt.HardwareCompatibilityLevel.AMPERE_PLUS
config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
x = network.add_input("x", trt.float32, (1, 4))
network.mark_output(network.add_activation(x, trt.ActivationType.RELU).get_output(0))
config.target = "cpu"
assert builder.build_serialized_network(network, config) is not None
assert any("VERSION_COMPATIBLE has no effect" in line for line in lines)
from mlirt.runtime.plan_file import read_plan
config.target = "cuda"
codes = []
for level in trt.HardwareCompatibilityLevel.AMPERE_PLUS, trt.HardwareCompatibilityLevel.NONE:
    config.hardware_compatibility_level = level
    plan = read_plan(bytes(builder.build_serialized_network(network, config)))
    codes.append(sorted({arch for kernel in plan.manifest.kernels for arch in kernel.objects}))
print(*codes)
config.reset()
assert config.hardware_compatibility_level is trt.HardwareCompatibilityLevel.NONE
"""


_STRONG = """
import numpy as np, tensorrt as trt
from tensorrt import BuilderFlag as Flag
lines = []
class Log(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
    def log(self, severity, text):
        lines.append(text)
builder = trt.Builder(Log())
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
assert network.get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
assert not builder.create_network(0).get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
def number(value):
    return network.add_constant((), np.array(value, np.float32)).get_output(0)
x = network.add_input("x", trt.float32, (1, 4, 6, 6))
pair = network.add_dequantize(network.add_quantize(x, number(0.5)).get_output(0), number(0.5)).get_output(0)
layer = network.add_activation(pair, trt.ActivationType.RELU)
layer.name, layer.get_output(0).name = "relu", "y"
network.mark_output(layer.get_output(0))
half = network.add_input("h", trt.float16, (3,))
doubled = network.add_elementwise(half, half, trt.ElementWiseOperation.SUM).get_output(0)
doubled.name = "d"
network.mark_output(doubled)
def config(*flags):
    made = builder.create_builder_config()
    made.target = "cpu"
    for flag in flags:
        made.set_flag(flag)
    return made
plan = builder.build_serialized_network(network, config())
engine = trt.Runtime(Log()).deserialize_cuda_engine(plan)
print([engine.get_tensor_dtype(name).name for name in ("x", "y", "h", "d")])
found = engine.engine.run({"x": np.full((1, 4, 6, 6), 0.8, np.float32), "h": np.array([1, 2, 3], np.float16)})
print(found["y"].max(), found["d"].dtype, found["d"].tolist())
for flag in (Flag.FP16, Flag.INT8, Flag.PREFER_PRECISION_CONSTRAINTS):
    assert builder.build_serialized_network(network, config(flag)) is None
    assert f"strongly typed: BuilderFlag.{flag.name} must not be set" in lines[-1], lines[-1]
layer.precision = trt.float32
assert builder.build_serialized_network(network, config()) is None
assert "relu: the network is strongly typed" in lines[-1]
"""


def told(version: str, code: str) -> str:
    command = [sys.executable, "-W", "ignore", "-m", "mlirt.as_tensorrt", "--version", version, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("version", "are_there"), [("8.5.3", False), ("8.6.1", True), ("10.x", True)])
def test_names_are_there_from_their_version_on(version: str, are_there: bool) -> None:
    lines = told(version, _NAMES).splitlines()
    assert lines == [" ".join([str(are_there)] * 3), f"{[are_there] * 3} {are_there}"]


def test_strongly_typed_networks_of_version_10() -> None:
    """Types are those of the network: no flag lets the builder choose others, and quantize layers need none."""
    assert told("10.x", _STRONG).splitlines() == ["['FLOAT', 'FLOAT', 'HALF', 'HALF']", "1.0 float16 [2.0, 4.0, 6.0]"]
    names = "import tensorrt as trt; print([one.name for one in trt.NetworkDefinitionCreationFlag])"
    assert "STRONGLY_TYPED" not in told("8.6.1", names)


def test_settings_are_kept_and_count() -> None:
    found = told("8.6.1", _NAMES + _SETTINGS)
    assert "expected a number from 0 to 5, got 6" in found
    assert "['compute_80', 'sm_80'] ['sm_80', 'sm_90a']" in found
