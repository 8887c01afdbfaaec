"""Programs that import tensorrt and CUDA's runtime run unchanged under `python -m mlirt.as_tensorrt`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import parser

from mlirt.tensorrt.reported_version import checked_version

ROOT = Path(__file__).parents[2]
_WITHOUT_DEVICE = {"CUDA_VISIBLE_DEVICES": ""}

_BUILD = """
import numpy as np
import tensorrt as trt

logger = trt.Logger(trt.Logger.WARNING)
builder = trt.Builder(logger)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
x = network.add_input("x", trt.float32, (2, 3))
y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
y.name = "y"
network.mark_output(y)
plan = builder.build_serialized_network(network, builder.create_builder_config())
engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
context = engine.create_execution_context()
given = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
found = np.zeros((2, 3), np.float32)
"""
_CHECK = """
np.testing.assert_array_equal(found, np.maximum(given, 0))
# Kernels of mlirt have run: the engine is its own, and lists what it launched.
assert type(engine).__module__.startswith("mlirt."), type(engine)
print(engine.num_layers, "launches", engine.create_engine_inspector().get_layer_information(
    0, trt.LayerInformationFormat.ONELINE))
"""
_CUDART = """
def checked(done):
    assert int(done[0]) == 0, done
    return done[1] if len(done) > 1 else None

stream = checked(cudart.cudaStreamCreate())
buffers = {name: checked(cudart.cudaMalloc(given.nbytes)) for name in ("x", "y")}
kinds = cudart.cudaMemcpyKind
checked(cudart.cudaMemcpyAsync(
    buffers["x"], given.ctypes.data, given.nbytes, kinds.cudaMemcpyHostToDevice, stream))
for name, address in buffers.items():
    context.set_tensor_address(name, address)
assert context.execute_async_v3(stream)
checked(cudart.cudaMemcpyAsync(
    found.ctypes.data, buffers["y"], found.nbytes, kinds.cudaMemcpyDeviceToHost, stream))
checked(cudart.cudaStreamSynchronize(stream))
for address in buffers.values():
    checked(cudart.cudaFree(address))
"""
_PYCUDA = """
import pycuda.driver as cuda
import pycuda.autoinit

stream = cuda.Stream()
x_memory, y_memory = cuda.mem_alloc(given.nbytes), cuda.mem_alloc(found.nbytes)
host = cuda.pagelocked_empty(6, np.float32)
cuda.memcpy_htod_async(x_memory, given, stream)
assert context.execute_async_v2([int(x_memory), int(y_memory)], stream.handle)
cuda.memcpy_dtoh_async(host, y_memory, stream)
stream.synchronize()
found = host.reshape(2, 3)
"""
_CUPY = """
import cupy

x_memory, y_memory = cupy.asarray(given), cupy.zeros((2, 3), cupy.float32)
assert context.execute_v2([x_memory.data.ptr, y_memory.data.ptr])
found = cupy.asnumpy(y_memory)
"""
_LIBCUDART = """
import ctypes

library = ctypes.CDLL("libcudart.so")
pointers = [ctypes.c_void_p(), ctypes.c_void_p()]
for pointer in pointers:
    assert library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(24)) == 0
address = lambda array: ctypes.c_void_p(array.ctypes.data)
assert library.cudaMemcpy(pointers[0], address(given), ctypes.c_size_t(24), 1) == 0
assert context.execute_v2([pointer.value for pointer in pointers])
assert library.cudaMemcpy(address(found), pointers[1], ctypes.c_size_t(24), 2) == 0
assert library.cudaMemcpy(address(found), None, ctypes.c_size_t(24), 2) != 0
assert [library.cudaFree(pointer) for pointer in pointers] == [0, 0]
assert library.cudaFree(pointers[0]) != 0
"""

_RELU = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }
"""


def run_as(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program under the command, with so many more variables."""
    return subprocess.run(
        [sys.executable, "-m", "mlirt.as_tensorrt", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **_WITHOUT_DEVICE, **environment},
    )


@pytest.mark.parametrize(
    "memory",
    [
        "from cuda import cudart" + _CUDART,
        "from cuda.bindings import runtime as cudart" + _CUDART,
        _PYCUDA,
        _CUPY,
        _LIBCUDART,
    ],
    ids=["cuda.cudart", "cuda.bindings.runtime", "pycuda", "cupy", "libcudart"],
)
def test_a_script_runs_our_kernels_without_a_device(tmp_path: Path, memory: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(_BUILD + memory + _CHECK, encoding="utf-8")
    done = run_as(str(script))
    assert done.returncode == 0, done.stderr
    assert "1 launches" in done.stdout


def test_the_library_of_plugins_can_be_opened() -> None:
    code = (
        "import ctypes, tensorrt as trt; library = ctypes.CDLL('libnvinfer_plugin.so', mode=ctypes.RTLD_GLOBAL);"
        "print(library.initLibNvInferPlugins(None, b''), len(trt.get_plugin_registry().plugin_creator_list) > 0)"
    )
    done = run_as("-c", code)
    assert done.stdout == "True True\n", done.stderr


@pytest.mark.parametrize(("asked", "told"), [("8.5.3", "8.5.3"), ("8.6", "8.6.1"), ("10.x", "10.0.1")])
def test_versions_are_told_in_subprocesses_too(asked: str, told: str) -> None:
    code = (
        "import subprocess, sys, tensorrt, tensorrt_bindings, tensorrt_libs; print(tensorrt.__version__, flush=True);"
        "subprocess.run([sys.executable, '-c', 'import tensorrt as t; print(t.__version__, hasattr(t, \"int64\"))'])"
    )
    done = run_as("--version", asked, "-c", code)
    assert done.stdout.split() == [told, told, str(told.startswith("10"))], done.stderr


def test_version_10_needs_no_flag_for_the_batch() -> None:
    code = "import tensorrt as trt; print(trt.Builder(trt.Logger()).create_network(0).has_implicit_batch_dimension)"
    assert run_as("--version=10.x", "-c", code).stdout == "False\n"
    assert run_as("--version=8.5.3", "-c", code).stdout == "True\n"


def test_a_version_that_is_not_known() -> None:
    done = run_as("--version", "7.1", "-c", "pass")
    assert done.returncode == 2
    assert "version '7.1' of TensorRT is not known" in done.stderr
    with pytest.raises(ValueError, match=r"expected 8\.5, 8\.6 or 10"):
        checked_version("9")


def test_another_sitecustomize_runs_as_well(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("FLAG = 'mine'\n", encoding="utf-8")
    code = "import sitecustomize, tensorrt; print(sitecustomize.FLAG, tensorrt.__version__)"
    assert run_as("-c", code, PYTHONPATH=str(tmp_path)).stdout == "mine 8.5.3\n"


def test_modules_arguments_and_exit_codes_are_the_programs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(sys.argv[1:]); sys.exit(7)\n", encoding="utf-8")
    done = run_as("-m", "program", "a b", "--version", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (7, "['a b', '--version']\n")
    assert run_as("no_such_command").returncode == 127


def test_nothing_is_imported_until_it_is_asked_for() -> None:
    """Without a GPU a program starts in a tenth of a second more: no NumPy, no compiler, no driver."""
    heavy = ("numpy", "xdsl", "onnx", "numba", "mlirt.builder")
    code = f"import sys, tensorrt; print([name for name in {heavy} if name in sys.modules])"
    assert run_as("-c", code).stdout == "[]\n"


def test_trtexec_has_its_name_banner_metrics_and_exit_codes(tmp_path: Path) -> None:
    model = parser.parse_model(_RELU)
    (tmp_path / "relu.onnx").write_bytes(model.SerializeToString())
    flags = [f"--onnx={tmp_path / 'relu.onnx'}", "--iterations=3", "--duration=0", "--warmUp=0"]
    done = run_as("-c", f"import subprocess, sys; sys.exit(subprocess.run(['trtexec', *{flags}]).returncode)")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("&&&& RUNNING TensorRT.trtexec [TensorRT v8503] # trtexec --onnx=")
    assert lines[-1].startswith("&&&& PASSED TensorRT.trtexec [TensorRT v8503] # trtexec --onnx=")
    for metric in ("Throughput: ", "Latency: min = ", "GPU Compute Time: min = ", "Enqueue Time: min = "):
        assert any(f"[I] {metric}" in line for line in lines), metric
    done = run_as("--version=10.x", "trtexec", f"--onnx={tmp_path / 'missing.onnx'}")
    assert done.returncode == 1
    assert "&&&& FAILED TensorRT.trtexec [TensorRT v100001] # trtexec" in done.stdout


@pytest.mark.parametrize("name", ["tensorrt", "tensorrt_bindings", "tensorrt_libs"])
def test_the_installable_packages_are_mlirt(name: str) -> None:
    code = f"import {name} as trt; print(trt.__file__, trt.Builder.__module__, trt.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "shim")},
    )
    assert done.stdout.split() == [
        str(ROOT / "shim" / name / "__init__.py"), "mlirt.builder.api.builder", "8.5.3"
    ], done.stderr  # fmt: skip
