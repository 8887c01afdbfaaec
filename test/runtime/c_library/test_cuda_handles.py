"""Handles of a C library for CUDA devices: what they share, refuse and give back, and arrays that lie on the device."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import NEEDS_COMPILER, compiled
from fake_cuda import NOTHING_LEFT, CudaProgram, rows
from fake_driver import Maker, cuda_plan
from small_network import network
from tiny_plan import tiny_parts

import mlirt
from mlirt.errors import PlanError
from mlirt.tools.rt_exec import main

pytestmark = NEEDS_COMPILER


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> CudaProgram:
    """The tiny plan's library, which many tests run; kernels write through their second arguments alone."""

    def change(manifest: dict[str, Any]) -> None:
        for kernel in manifest["kernels"]:
            kernel["written"] = [1]

    return CudaProgram(cuda_plan(tiny_parts, change), tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def program(exported: CudaProgram) -> Iterator[CudaProgram]:
    """The same, with settings of its own."""
    before = exported.settings
    yield exported
    exported.settings = before


def test_wrong_lengths(program: CudaProgram) -> None:
    said = program.error({"x": np.zeros((2, 5), np.float32)})
    assert said == "status 2: input 'x': expected shape (n, 4), got (2, 5): dimension 1 must be 4, not 5"
    assert program.journal.end == NOTHING_LEFT


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"LD_LIBRARY_PATH": ""}, "status 7: the library needs a CUDA device, and there is no CUDA driver here"),
        ({"FAKE_CUDA_DEVICES": "0"}, "status 7: the library needs a CUDA device, and this machine has none"),
        ({"FAKE_CUDA_CAPABILITY": "75"}, "status 7: the library has code for sm_80, sm_90a, but this device is sm_75"),
        ({"FAKE_CUDA_SHARED": "1024"}, "status 7: kernel scale needs 65536 bytes of shared memory, and a block of"),
        ({"FAKE_CUDA_FAILS": "cuInit:1"}, "status 7: the library needs a CUDA device, and the driver does not start"),
        ({"FAKE_CUDA_FAILS": "cuModuleLoadData:1"}, "status 8: CUDA: cuModuleLoadData, for kernel scale: CUDA_ERROR_L"),
        ({"FAKE_CUDA_FAILS": "cuMemAlloc:1"}, "status 4: CUDA: cuMemAlloc of the weights: CUDA_ERROR_OUT_OF"),
        ({"FAKE_CUDA_FAILS": "cuMemAlloc:2"}, "status 4: the device has no memory for"),
        ({"FAKE_CUDA_FAILS": "cuMemHostAlloc:1"}, "status 4: CUDA: cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"),
        ({"FAKE_CUDA_FAILS": "cuStreamBeginCapture:1"}, "status 8: CUDA: cuStreamBeginCapture"),
        ({"FAKE_CUDA_FAILS": "cuLaunchKernel:2"}, "status 8: CUDA: cuLaunchKernel"),
        ({"FAKE_CUDA_FAILS": "cuGraphInstantiate:1"}, "status 8: CUDA: cuGraphInstantiateWithFlags"),
        ({"FAKE_CUDA_FAILS": "cuGraphLaunch:1"}, "status 8: CUDA: cuGraphLaunch: CUDA_ERROR_LAUNCH_FAILED (719): some"),
        ({"FAKE_CUDA_FAILS": "cuMemcpyDtoH:1"}, "status 8: CUDA: cuMemcpyDtoHAsync"),
        ({"FAKE_CUDA_FAILS": "cuStreamSynchronize:2"}, "status 8: CUDA: cuStreamSynchronize"),
    ],
)
def test_what_the_driver_refuses(program: CudaProgram, settings: dict[str, str], said: str) -> None:
    """The text says what is wrong, and all that was made is given back."""
    program.settings = {**program.settings, **settings}
    assert program.error(rows(2)).startswith(said)
    if "LD_LIBRARY_PATH" not in settings:
        assert program.journal.end == NOTHING_LEFT


def test_ptx_for_newer_devices(tmp_path: Path, tiny: Maker) -> None:
    """It is compressed in a plan, and text in a library."""

    def change(manifest: dict[str, Any]) -> None:
        for kernel in manifest["kernels"]:
            kernel["object"] = {"sm_90a": "scale.o", "compute_80": "scale.ptx"}

    def with_ptx() -> Any:
        made = tiny()
        made.sections["scale.ptx"] = zlib.compress(b".version 7.0\n.target sm_80\n")
        return made

    program = CudaProgram(cuda_plan(with_ptx, change), tmp_path)
    for capability, kind in (("90", "module cubin"), ("120", "module ptx")):
        program.settings = {**program.settings, "FAKE_CUDA_CAPABILITY": capability}
        program.outputs(rows(2), 0)
        assert program.journal.of("module") == [kind]


_TWO_HANDLES = """
#include <stdio.h>
#include "net.h"
int main(void) {
  net_handle *a, *b;
  static float x[12], y[2][12], z[8];
  int64_t shape[] = {3, 4};
  const void *in[] = {x};
  void *out[2][2] = {{y[0], z}, {y[1], z}};
  if (net_create(&a, 0) || net_create(&b, -1))
    return 1;
  if (net_set_input_shape(a, 0, shape, 2) || net_set_input_shape(b, 0, shape, 2))
    return 1;
  if (net_run(a, in, out[0]))
    return 2;
  net_destroy(a);
  if (net_run(b, in, out[1]))
    return 3;
  printf("%g %g\\n", y[0][0], y[1][0]);
  net_destroy(b);
  return net_create(&a, 1) == NET_NO_DEVICE ? puts(net_error(NULL)) < 0 : 4;
}
"""


def test_handles_share_code_and_weights(program: CudaProgram) -> None:
    """The first one to be made has them, and the last one gives them back."""
    folder = program.folder
    (folder / "two.c").write_text(_TWO_HANDLES)
    compiled("cc", folder / "two.c", folder / "two", folder, "-Wl,-rpath,$ORIGIN", "-L.", "-lnet")
    done = program.run([folder / "two"])
    assert (done.returncode, done.stdout) == (0, f"{np.cos(1):.6g} {np.cos(1):.6g}\nthere is no CUDA device 1, of 1\n")
    assert len(program.journal.of("module")) == 1
    assert len(program.journal.of("allocate")) == 1 + 2 * 2
    assert program.journal.end == NOTHING_LEFT


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_no_leak(program: CudaProgram) -> None:
    check = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--error-exitcode=99"]
    command = [*check, *program.command(rows(3), 0, 1, 2)]
    done = program.run(command)
    assert done.returncode == 0, done.stderr


def test_the_library_exports_its_functions_alone(program: CudaProgram) -> None:
    done = program.run(["nm", "-D", "--defined-only", "libnet.so"])
    names = {line.split(" ")[-1] for line in done.stdout.splitlines()}
    assert all(name.startswith("net_") for name in names)
    assert {"net_run", "net_run_device", "net_set_stream", "net_stream", "net_synchronize"} < names


def test_rt_exec_writes_a_library_for_cuda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.onnx").write_bytes(network(1).SerializeToString())
    given = [f"--onnx={tmp_path / 'a.onnx'}", "--target=cuda", "--gpu=sm_90a", f"--exportC={tmp_path / 'c'}"]
    assert main([*given, "--buildOnly"]) == 0
    assert f"Wrote the C library {tmp_path / 'c' / 'libnet.so'}" in capsys.readouterr().out
    made = {"example.c", "libnet.so", "net.h", "net.hpp", "net.o"}
    assert {one.name for one in (tmp_path / "c").iterdir()} == made


def test_damaged_code(tiny: Maker, tmp_path: Path) -> None:
    def damaged() -> Any:
        made = tiny()
        made.sections["scale.o"] = b"no cubin"
        return made

    with pytest.raises(PlanError, match=r"damaged object code 'scale\.o': not a cubin"):
        mlirt.export_c(cuda_plan(damaged), tmp_path)


_ON_THE_DEVICE = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "net.h"
/* Memory of the device is memory of the host here. */
static float x[2][64] __attribute__((aligned(256))), y[2][64] __attribute__((aligned(256))), z[64]
    __attribute__((aligned(256)));
int main(void) {
  net_handle *h;
  void *stream = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*create)(void **, unsigned) = 0, (*destroy)(void *) = 0, (*capture)(void *, int) = 0;
  int (*end)(void *, void **) = 0, (*drop)(void *) = 0, (*make)(void **, void *, unsigned long long) = 0;
  int (*launch)(void *, void *) = 0, (*forget)(void *) = 0, (*retain)(void **, int) = 0, (*enter)(void *) = 0;
  int (*release)(int) = 0;
  *(void **)&create = dlsym(driver, "cuStreamCreate");
  *(void **)&destroy = dlsym(driver, "cuStreamDestroy_v2");
  *(void **)&capture = dlsym(driver, "cuStreamBeginCapture_v2");
  *(void **)&end = dlsym(driver, "cuStreamEndCapture");
  *(void **)&drop = dlsym(driver, "cuGraphDestroy");
  *(void **)&make = dlsym(driver, "cuGraphInstantiateWithFlags");
  *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  *(void **)&release = dlsym(driver, "cuDevicePrimaryCtxRelease_v2");
  *(void **)&enter = dlsym(driver, "cuCtxSetCurrent");
  *(void **)&launch = dlsym(driver, "cuGraphLaunch");
  *(void **)&forget = dlsym(driver, "cuGraphExecDestroy");
  int64_t shape[] = {2, 4};
  if (net_create(&h, -1) || net_set_input_shape(h, 0, shape, 2) || create(&stream, 0))
    return 1;
  if (net_stream(h) == stream || net_set_stream(h, stream) || net_stream(h) != stream)
    return 2;
  for (int run = 0; run < 6; run++) {
    const void *in[] = {x[run % 2]};
    void *out[] = {y[run % 2], run < 4 ? z : NULL};
    for (int i = 0; i < 8; i++)
      x[run % 2][i] = (float)(run + i);
    if (net_run_device(h, in, out) || net_synchronize(h))
      return 3;
    if (net_output_data(h, 0) != y[run % 2])
      return 4;
    const float *weighed = net_output_data(h, 1);
    printf("%g %g %g\\n", y[run % 2][0], y[run % 2][7], weighed[7]);
  }
  /* Arrays that begin anywhere, and one array for two. */
  const void *odd[] = {x[0] + 1};
  void *both[] = {x[0] + 1, NULL};
  if (net_run_device(h, odd, both) || net_run_device(h, odd, both) || net_set_stream(h, NULL))
    return 5;
  void *graph = NULL, *executable = NULL;
  const void *in[] = {x[0]};
  void *out[] = {y[1], z};
  if (net_set_stream(h, stream) || capture(stream, 0) || net_run(h, in, out) != NET_INVALID_ARGUMENT)
    return 6;
  printf("%s\\n", net_error(h));
  if (net_run_device(h, in, out) || net_set_stream(h, NULL) || end(stream, &graph) || make(&executable, graph, 0))
    return 7;
  drop(graph);
  int64_t larger[] = {2000, 4};
  static float many[8000];
  const void *all[] = {many};
  void *none[] = {NULL, NULL};
  if (net_set_input_shape(h, 0, larger, 2) || net_run(h, all, none))
    return 8;
  void *context = NULL;
  if (retain(&context, 0) || enter(context))
    return 10;
  for (int run = 0; run < 2; run++) {
    for (int i = 0; i < 8; i++)
      x[0][i] = (float)(run + i);
    if (launch(executable, stream))
      return 9;
    printf("%g %g %g\\n", y[1][0], y[1][7], z[7]);
  }
  forget(executable);
  release(0);
  net_destroy(h);
  destroy(stream);
  return 0;
}
"""


def test_arrays_on_the_device(program: CudaProgram) -> None:
    """They are copied when their addresses are new, and used where they lie when these have come before.

    On a stream that is captured a run becomes part of the caller's graph, whose memory stays.
    """
    (program.folder / "device.c").write_text(_ON_THE_DEVICE)
    compiled(
        "cc",
        program.folder / "device.c",
        program.folder / "device",
        program.folder,
        "-Wl,-rpath,$ORIGIN",
        "-L.",
        "-lnet",
        "-ldl",
    )
    done = program.run([program.folder / "device"])
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert lines.pop(6) == (
        "the stream is being captured, and this cannot be: net_run waits for the device; take net_run_device"
    )
    for run, line in zip([*range(6), 0, 1], lines, strict=True):
        values = np.cos((2 * (np.arange(8, dtype=np.float32) + run) + 1)[::-1])
        np.testing.assert_allclose([float(one) for one in line.split()], [values[0], values[7], 7.5], rtol=1e-5)
    copies = [len(group) for group in _between_replays(program.journal.flow)]
    # Before each run x where it is new; behind it y likewise, and z where it is wanted, as that lies in the arena.
    assert copies[:8] == [1, 2 + 1, 2 + 0, 1 + 0, 1 + 0, 0 + 0, 0 + 1, 1 + 1]
    # In the caller's graph x and y lie where they are, at once; z is copied.
    assert len(program.journal.of("copy")) == 1
    assert program.journal.end == NOTHING_LEFT


def _between_replays(flow: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in flow:
        if line.startswith("replay"):
            found.append([])
        else:
            found[-1].append(line)
    return found


_CPP = """
#include <cstdio>
#include "net.hpp"
int main() {
  net_cpp::Network network;
  std::vector<float> x(4, 1.0f), y(4), z(8);
  network.set_input_shape(0, {1, 4});
  network.set_stream(nullptr);
  network.run({x.data()}, {y.data(), z.data()});
  network.synchronize();
  std::printf("%g\\n", y[0]);
  try {
    net_cpp::Network other(9);
  } catch (const net_cpp::Error& error) {
    std::puts(error.what());
  }
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler (g++)")
def test_net_hpp_and_the_example(program: CudaProgram) -> None:
    options = ("-Wl,-rpath,$ORIGIN", "-L.", "-lnet")
    folder = program.folder
    compiled("cc", folder / "example.c", folder / "shared", folder, "-Wall", "-Wextra", "-Werror", *options)
    compiled("cc", folder / "example.c", folder / "static", folder, "net.o", "-ldl", "-lpthread")
    for name in ("shared", "static"):
        done = program.run([folder / name, "3x4"])
        assert done.stdout.startswith("y [3, 4] ")
    (folder / "use.cpp").write_text(_CPP)
    compiled("g++", folder / "use.cpp", folder / "use", folder, "-std=c++11", "-Wall", "-Wextra", "-Werror", *options)
    done = program.run([folder / "use"])
    assert done.stdout == f"{np.cos(3):.6g}\nthere is no CUDA device 9, of 1\n"
