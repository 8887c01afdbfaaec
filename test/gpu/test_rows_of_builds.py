"""Rows about builds for a GPU: their time, TF32, odd sizes on matrix units, a program that asks for formats."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from device_networks import HEURISTIC, NONE, gpu_config, opened, plan_of, products
from layer_networks import CollectingLogger, constant, new_network
from onnx import helper
from onnx_models import model_of

import mlirt
import mlirt as trt
from mlirt.builder.machine_code.disassembler import disassemble
from mlirt.runtime.engine import Engine

DEPTH = 1024


def product_network(logger: CollectingLogger) -> trt.INetworkDefinition:
    """One product of [512, DEPTH] with weights."""
    network, random = new_network(logger), np.random.default_rng(3)
    x = network.add_input("x", trt.float32, (512, DEPTH))
    factor = (random.standard_normal((DEPTH, DEPTH)) / DEPTH**0.5).astype(np.float32)
    y = network.add_matrix_multiply(x, NONE, constant(network, factor), NONE).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


@pytest.mark.gpu
def test_what_makes_builds_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#3.17: a timing cache, and the choice by estimates, each against a build that measures; no
    machine code is kept from one to the next.
    """
    monkeypatch.setenv("MLIRT_CACHE", "off")
    logger = CollectingLogger()

    def built(measures: bool, cache: bytes | None) -> tuple[float, bytes]:
        config = gpu_config(logger, trt.BuilderFlag.FP16)
        if measures:
            config.clear_flag(HEURISTIC)
            assert config.set_timing_cache(config.create_timing_cache(cache or b""), False)
        start = time.perf_counter()
        plan = plan_of(product_network(logger), config, logger)
        seconds = time.perf_counter() - start
        x = np.random.default_rng(1).standard_normal((512, DEPTH)).astype(np.float32)
        found = opened(plan, logger).engine.run({"x": x})["y"]
        np.testing.assert_allclose(found, products(x, (DEPTH, DEPTH)), atol=3e-2)
        kept = config.get_timing_cache()
        return seconds, bytes(kept.serialize()) if measures and kept is not None else b""

    built(False, None)  # the compilers have started
    measured, cache = built(True, None)
    assert len(cache) > 100
    cached, again = built(True, cache)
    assert again == cache  # nothing was measured
    estimated, _ = built(False, None)
    assert cached < 0.8 * measured
    assert estimated < 0.8 * measured


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("has_tf32", "override", "least", "most"),
    [(True, None, 1e-4, 3e-3), (False, None, 0, 2e-6), (True, "0", 0, 2e-6)],
)
def test_tf32_rounds(
    has_tf32: bool, override: str | None, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tensorrt-features.md#4.10: the error is that of 10 bits, or that of 23 where the flag or the variable says so."""
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    if override is not None:
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", override)
    logger = CollectingLogger()
    engine = opened(plan_of(product_network(logger), gpu_config(logger, has_tf32=has_tf32), logger), logger)
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    x = np.random.default_rng(1).standard_normal((512, DEPTH)).astype(np.float32)
    want = products(x, (DEPTH, DEPTH)).astype(np.float64)
    error = float(np.abs(engine.engine.run({"x": x})["y"] - want).mean() / np.abs(want).mean())
    assert least <= error <= most


def product_of(rows: int, depth: int, width: int) -> onnx.ModelProto:
    w = (np.random.default_rng(1).standard_normal((depth, width)) / depth**0.5).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    return model_of([node], {"x": ("float32", [rows, depth])}, ["y"], {"w": w})


def convolution_of(channels: int, filters: int, size: int) -> onnx.ModelProto:
    shape = (filters, channels, 3, 3)
    w = (np.random.default_rng(1).standard_normal(shape) / (9 * channels) ** 0.5).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1] * 4)
    return model_of([node], {"x": ("float32", [2, channels, size, size + 2])}, ["y"], {"w": w})


def quantized_product_of(rows: int, depth: int, width: int) -> onnx.ModelProto:
    """Bytes times bytes; all scales are powers of two, so that nothing is rounded but the input."""
    bytes_ = np.random.default_rng(1).integers(-127, 128, (depth, width)).astype(np.int8)
    weights = {"w8": bytes_, "sx": np.array(2.0**-4, np.float32), "sw": np.array(2.0**-7, np.float32)}
    weights["zero"] = np.array(0, np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zero"], ["x8"], name="quantize"),
        helper.make_node("DequantizeLinear", ["x8", "sx", "zero"], ["xd"], name="dequantize"),
        helper.make_node("DequantizeLinear", ["w8", "sw", "zero"], ["wd"], name="weights"),
        helper.make_node("MatMul", ["xd", "wd"], ["y"], name="product"),
    ]
    return model_of(nodes, {"x": ("float32", [rows, depth])}, ["y"], weights)


CASES: dict[str, tuple[onnx.ModelProto, str, float]] = {
    "product fp16": (product_of(517, 333, 259), "fp16", 1e-2),
    "convolution tf32": (convolution_of(67, 131, 29), "tf32", 3e-3),
    "product int8": (quantized_product_of(517, 333, 259), "int8", 1e-6),
}
"""Models of odd sizes, the precision, and the largest error against the largest result."""


def odd_engine(case: str, target: str) -> Engine:
    model, precision, _ = CASES[case]
    engine = mlirt.compile(model, target, precision, heuristic=True)
    assert isinstance(engine, Engine)
    return engine


def check_matrix_units(engine: Engine) -> None:
    """Some kernel of the engine multiplies by the matrix units of a device: its machine code says so."""
    sections = {section for kernel in engine.plan.manifest.kernels for section in kernel.objects.values()}
    listings = disassemble([bytes(engine.plan.sections[section]) for section in sorted(sections)])
    assert any(re.search(r"\b(HMMA|IMMA|HGMMA|IGMMA|QGMMA)\.", text) for text in listings)


@pytest.mark.parametrize("case", CASES)
def test_the_code_for_odd_sizes_has_products_of_matrix_units(case: str) -> None:
    """tensorrt-features.md#27.6: in the machine code, which needs no device."""
    check_matrix_units(odd_engine(case, "cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_odd_sizes_run_on_matrix_units(case: str) -> None:
    """tensorrt-features.md#27.6: with right results."""
    model, _, tolerance = CASES[case]
    engine = odd_engine(case, "cuda")
    check_matrix_units(engine)
    (described,) = engine.inputs
    x = np.random.default_rng(2).standard_normal(tuple(map(int, described.shape))).astype(np.float32)
    (want,) = mlirt.compile(model, "reference").run({"x": x}).values()
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found, want, rtol=0, atol=tolerance * float(np.abs(want).max()))


_FORMATS = '''
import numpy as np
import tensorrt as trt
from cuda.bindings import runtime as cudart

shape = 1, 3, 4, 5
logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
profile = builder.create_optimization_profile()
config = builder.create_builder_config()
config.set_flag(trt.BuilderFlag.FP16)
inputT0 = network.add_input("inputT0", trt.float32, (-1,) + shape[1:])
profile.set_shape(inputT0.name, shape, shape, (2,) + shape[1:])
config.add_optimization_profile(profile)
identityLayer = network.add_identity(inputT0)
identityLayer.get_output(0).dtype = trt.DataType.HALF
identityLayer.get_output(0).allowed_formats = 1 << int(trt.TensorFormat.CHW4)
network.mark_output(identityLayer.get_output(0))
engineString = builder.build_serialized_network(network, config)
engine = trt.Runtime(logger).deserialize_cuda_engine(engineString)
nIO = engine.num_io_tensors
lTensorName = [engine.get_tensor_name(i) for i in range(nIO)]
context = engine.create_execution_context()
context.set_input_shape(lTensorName[0], shape)
for name in lTensorName:
    print(name, engine.get_tensor_dtype(name), engine.get_tensor_format_desc(name),
          context.get_tensor_shape(name), context.get_tensor_strides(name))
data = np.arange(np.prod(shape)).reshape(shape).astype(np.float32)
size = 1 * 4 * 4 * 5 * 2  # three channels are stored as four
status, source = cudart.cudaMalloc(data.nbytes)
assert int(status) == 0, status
status, target = cudart.cudaMalloc(size)
assert int(status) == 0, status
cudart.cudaMemcpy(source, data.ctypes.data, data.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice)
context.set_tensor_address(lTensorName[0], int(source))
context.set_tensor_address(lTensorName[1], int(target))
assert context.execute_async_v3(0)
found = np.empty((1, 1, 4, 5, 4), np.float16)
cudart.cudaMemcpy(found.ctypes.data, target, size, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost)
np.testing.assert_array_equal(found[..., :3].transpose(0, 4, 1, 2, 3).reshape(shape), data)
assert not found[..., 3].any()
assert type(engine).__module__.startswith("mlirt.")
print("passed on", engine.engine.target)
for address in (source, target):
    cudart.cudaFree(address)
'''


def run_program(folder: Path, **variables: str) -> str:
    """What the program prints that asks for formats."""
    (folder / "main.py").write_text(_FORMATS)
    command = [sys.executable, "-m", "mlirt.as_tensorrt", str(folder / "main.py")]
    environment: dict[str, Any] = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.gpu
def test_a_program_that_asks_for_formats(tmp_path: Path) -> None:
    """tensorrt-features.md#5.12: unchanged, under the name of TensorRT, with CUDA's own runtime."""
    out = run_program(tmp_path)
    assert "Four wide channel vectorized row major FP16 format" in out
    assert "passed on cuda" in out


def test_the_program_that_asks_for_formats_without_a_gpu(tmp_path: Path) -> None:
    """tensorrt-features.md#5.12: the same program, on the CPU."""
    out = run_program(tmp_path, CUDA_VISIBLE_DEVICES="")
    assert "Four wide channel vectorized row major FP16 format" in out
    assert "passed on cpu" in out
