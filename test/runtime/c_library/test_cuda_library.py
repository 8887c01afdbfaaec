"""An engine for CUDA devices as a C library: it asks a driver, a fake one, for what the Python runtime asks it for."""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from c_programs import NEEDS_COMPILER, assert_same_bits, compiled
from emulated_networks import networks
from fake_cuda import CudaProgram, python_runs
from fake_driver import Maker, cuda_plan
from fuzz_cases import Case
from onnx import parser
from onnx_control_flow import SUM_EVEN
from onnx_models import Array
from small_network import network
from tiny_plan import tiny_parts

import mlirt
from mlirt.errors import PlanError
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan
from mlirt.tools.rt_exec import main

pytestmark = NEEDS_COMPILER

SIGN_AND_EXPONENT = {"buffer": 0, "offset": 3}
NOTHING_LEFT = "left 0 allocations, 0 modules, 0 streams, 0 events, 0 graphs, 0 executables, 0 contexts"
Change = Mapping[str, Any]


def rows(n: int, first: float | None = None) -> dict[str, Array]:
    if first is not None:
        return {"x": np.full((n, 4), first, np.float32)}
    return {"x": np.random.default_rng(n).standard_normal((n, 4), np.float32)}


def tiny_plan(tiny: Maker, **changes: Any) -> Plan:
    """The tiny plan, whose buffers live long enough for any program."""

    def change(manifest: dict[str, Any]) -> None:
        manifest |= changes
        manifest["buffers"][1] |= {"first": 0, "last": 2}
        manifest["buffers"][4] |= {"first": 0, "last": 3}

    return cuda_plan(tiny, change)


def plan_of(text: str | None = None, batch: int | str = 1) -> Plan:
    engine = mlirt.compile(network(batch) if text is None else parser.parse_model(text), target="cuda", gpu="sm_90a")
    assert isinstance(engine, Engine)
    return engine.plan


def assert_same_work(plan: Plan, folder: Path, runs: Sequence[Mapping[str, Array]], *options: str) -> CudaProgram:
    """Both runtimes make the same launches with the same arguments, in the same graphs, and the same copies.

    Where the program of a plan is no plain list, the runtimes may place the arena differently.
    """
    program = CudaProgram(plan, folder, *options)
    is_straight = all(isinstance(step, int) for step in plan.manifest.program)
    for feeds in runs:
        expected, by_python = python_runs(plan, [feeds, feeds], folder, options)
        assert_same_bits(program.outputs(feeds, 0, keeps=2), expected[1])
        in_c = program.journal
        for one, other in ((in_c.graphs, by_python.graphs), (in_c.flow, by_python.flow)):
            assert [_shown(line, is_straight) for line in one] == [_shown(line, is_straight) for line in other]
        assert sorted(in_c.of("map")) == sorted(by_python.of("map"))
        assert in_c.end == NOTHING_LEFT
        assert not in_c.of("ERROR:")
    return program


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


def _shown(line: str, has_places: bool) -> str:
    return line if has_places else re.sub(r"m2\+\d+", "m2", line)


def test_any_length(tiny: Maker, tmp_path: Path) -> None:
    assert_same_work(tiny_plan(tiny), tmp_path, [rows(n) for n in (3, 1, 100, 0)])


def test_a_network_with_tensor_maps(tmp_path: Path) -> None:
    """Convolutions of an image whose batch is open, and products of half precision."""
    engine = mlirt.compile(network("n"), target="cuda", gpu="sm_90a", precision="fp16")
    assert isinstance(engine, Engine)
    random = np.random.default_rng(1)
    runs = [{"x": random.standard_normal((n, 3, 64, 64), np.float32)} for n in (2, 1, 5)]
    program = assert_same_work(engine.plan, tmp_path, runs)
    assert program.journal.of("map")


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("case", list(networks()), ids=lambda case: case.name)
def test_networks_of_many_kinds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: Case, precision: Literal["fp32", "fp16"]
) -> None:
    """Convolutions, int8, attention, an LSTM, a loop whose results the data size, TopK, and types of all widths."""
    monkeypatch.setenv("FAKE_CUDA_FILL", "0")  # what kernels would write is 0, which is a size, too
    engine = mlirt.compile(case.model, target="cuda", gpu="sm_90a", precision=precision)
    assert isinstance(engine, Engine)
    assert_same_work(engine.plan, tmp_path, case.runs)


@pytest.mark.parametrize("options", [(), ("-DOLD",)], ids=["decided on the device", "decided by the host"])
@pytest.mark.parametrize("first", [1.0, 0.0])
def test_a_branch(tiny: Maker, tmp_path: Path, first: float, options: tuple[str, ...]) -> None:
    plan = tiny_plan(tiny, program=[{"if": SIGN_AND_EXPONENT, "then": [0], "else": [1]}, 2], **_conditions(tiny))
    assert_same_work(plan, tmp_path, [rows(2, first)], *options)


def _conditions(tiny: Maker) -> dict[str, Any]:
    return {"conditions": {"sm_90a": "scale.o"}}


@pytest.mark.parametrize("options", [(), ("-DOLD",)], ids=["decided on the device", "decided by the host"])
def test_a_loop(tiny: Maker, tmp_path: Path, options: tuple[str, ...]) -> None:
    """A loop over halvings: it ends where the top byte of the first number is 0."""
    halve = {"kernel": 0, "layer": "halve", "grid": [1, 1, 1]}
    args = [{"buffer": 0}, {"buffer": 0}, {"int": ["*", "n", 4]}, {"float": 1e-10}, {"float": 0.0}]

    def change(manifest: dict[str, Any]) -> None:
        manifest["launches"].append(halve | {"args": args})
        manifest["program"] = [0, 1, 2, {"while": SIGN_AND_EXPONENT, "before": [], "body": [3]}]
        manifest |= _conditions(tiny)

    program = assert_same_work(cuda_plan(tiny, change), tmp_path, [rows(2, 1.0), rows(2, 0.0)], *options)
    assert (" while " in " ".join(program.journal.graphs)) == (not options)


def test_a_size_that_the_run_tells(tiny: Maker, tmp_path: Path) -> None:
    plan = tiny_plan(tiny, program=[0, 1, {"size": "s", "word": {"buffer": 0}}, 2], sizes=["s"])
    program = CudaProgram(plan, tmp_path)
    expected, _ = python_runs(plan, [rows(2, 1.0)], tmp_path)
    assert_same_bits(program.outputs(rows(2, 1.0), 0, runs=1), expected[0])
    assert len(program.journal.of("replay")) == 3


def test_a_requirement(tiny: Maker, tmp_path: Path) -> None:
    plan = tiny_plan(tiny, program=[{"require": SIGN_AND_EXPONENT, "message": "x is 0"}, 0, 1, 2])
    program = assert_same_work(plan, tmp_path, [rows(2, 1.0)])
    assert program.error(rows(2, 0.0)) == "status 3: x is 0"


def test_a_loop_of_a_network(tmp_path: Path) -> None:
    plan = plan_of(SUM_EVEN)
    program = CudaProgram(plan, tmp_path)
    feeds = {"items": np.array([1, 2, 4], np.float32), "count": np.array(3, np.int64)}
    names = [tensor.name for tensor in plan.manifest.given_inputs]
    given = dict(zip(names, feeds.values(), strict=True))
    _, by_python = python_runs(plan, [given], tmp_path)
    program.outputs(given, 0, runs=1, keeps=2)
    kernels = [re.sub(r"m\d\+\d+", "m", line) for line in program.journal.graphs]
    assert kernels == [re.sub(r"m\d\+\d+", "m", line) for line in by_python.graphs]


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


_COUNTER = """
    <ir_version: 8, opset_import: ["" : 17]>
    counter (float[2] x, float[2] before) => (float[2] after, float[2] y) {
       after = Add (x, before)
       y = Neg (after)
    }"""


def test_state_stays_on_the_device(tmp_path: Path) -> None:
    engine = mlirt.compile(
        parser.parse_model(_COUNTER),
        target="cuda",
        gpu="sm_90a",
        state={"before": "after"},
        initial_state={"before": np.array([5, 7], np.float32)},
    )
    assert isinstance(engine, Engine)
    program = CudaProgram(engine.plan, tmp_path)
    program.outputs({"x": np.ones(2, np.float32)}, 0, runs=3, keeps=2)
    flow = [line.split(" ")[0] for line in program.journal.flow]
    assert flow == ["d2d", *["h2d", "d2d", "replay", "d2d", "d2h"] * 3]  # first what the state begins with
    next_one, shown = (line.split(" ")[1:3] for line in program.journal.flow[4:6])
    before, into = program.journal.flow[2].split(" ")[2], program.journal.flow[2].split(" ")[1]
    assert next_one[0] not in (before, into)
    assert next_one[1] != shown[1]
    again = program.journal.flow[7].split(" ")
    assert again[1:3] == [into, next_one[0]]
    assert program.journal.end == NOTHING_LEFT


def test_numbers_of_runs(tmp_path: Path) -> None:
    """Random numbers follow from how many runs there were."""
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        noise (float[3] x) => (float[3] y) {
           noise = RandomUniformLike <seed: float = 3> (x)
           y = Add (x, noise)
        }"""
    program = assert_same_work(plan_of(text), tmp_path, [{"x": np.ones(3, np.float32)}])
    numbers = [line.split(" ")[-1] for line in program.journal.of("h2d") if line.endswith(tuple(_digests((0, 1))))]
    assert numbers == _digests((0, 1))


def _digests(numbers: Sequence[int]) -> list[str]:
    """What the driver writes for a number of 64 bits."""
    found: list[str] = []
    for number in numbers:
        digest = 2166136261
        for byte in number.to_bytes(8, "little"):
            digest = (digest ^ byte) * 16777619 % (1 << 32)
        found.append(f"{digest:08x}")
    return found


def test_borders_return_after_another_shape(tiny: Maker, tmp_path: Path) -> None:
    size = ["+", ["*", "n", 16], 64]

    def change(manifest: dict[str, Any]) -> None:
        manifest["buffers"].append({"kind": "arena", "bytes": size, "first": 0, "last": 3, "halo": "h", "fill": 7})
        manifest["launches"][0]["args"][1] = {"buffer": 5}
        manifest["launches"][1]["args"][0] = {"buffer": 5}

    plan = cuda_plan(tiny, change)
    program = CudaProgram(plan, tmp_path)
    for n in (2, 3):
        _, by_python = python_runs(plan, [rows(n), rows(n)], tmp_path)
        program.outputs(rows(n), 0, keeps=2)
        assert sorted(program.journal.flow) == sorted(by_python.flow)
        assert program.journal.graphs == by_python.graphs
    fills = program.journal.of("fill")
    assert [line.split(" ")[2:] for line in fills] == [["7", "112"]]
    (tmp_path / "shapes.c").write_text(_SHAPES)
    compiled("cc", tmp_path / "shapes.c", tmp_path / "shapes", tmp_path, "-Wl,-rpath,$ORIGIN", "-L.", "-lnet")
    assert program.run([tmp_path / "shapes"]).returncode == 0
    kinds = [line.split(" ")[0] for line in program.journal.of("fill", "capture", "replay")]
    assert kinds == ["fill", "capture", "replay", "replay", "fill", "capture", "replay", "fill", "replay", "replay"]
    assert program.journal.end == NOTHING_LEFT


_SHAPES = """
#include "net.h"
int main(void) {
  net_handle *h;
  static float x[12];
  const void *in[] = {x};
  void *out[] = {0, 0};
  int64_t lengths[] = {2, 2, 3, 2, 2};
  if (net_create(&h, 0))
    return 1;
  for (int run = 0; run < 5; run++) {
    int64_t shape[] = {lengths[run], 4};
    if (net_set_input_shape(h, 0, shape, 2) || net_run(h, in, out))
      return 2;
  }
  net_destroy(h);
  return 0;
}
"""


def test_launches_that_begin_early_and_blocks_that_wait(tiny: Maker, tmp_path: Path) -> None:
    """Attributes of launches: `dependent_launch` and `cooperative`, of which not all fit on the device at once."""

    def change(manifest: dict[str, Any]) -> None:
        scale, reverse = manifest["kernels"]
        scale |= {"dependent_launch": True, "cooperative": True, "written": [1], "object": {"sm_90a": "scale.o"}}
        reverse |= {"dependent_launch": True, "written": [1], "object": {"sm_90a": "reverse.o"}}

    runs = [rows(n) for n in (3, 70, 100)]
    program = assert_same_work(cuda_plan(tiny, change), tmp_path, runs)
    nodes = program.journal.of("node")
    assert any("attribute 2=1" in line for line in nodes)
    assert any("attribute 6=1" in line for line in nodes)


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


def test_where_the_driver_refuses_to_decide_the_host_does(tiny: Maker, tmp_path: Path) -> None:
    changes = {"program": [{"if": SIGN_AND_EXPONENT, "then": [0, 1], "else": []}, 2], **_conditions(tiny)}
    program = CudaProgram(tiny_plan(tiny, **changes), tmp_path)
    for first, replays in ((1.0, 2), (0.0, 1)):
        program.settings = {**program.settings, "FAKE_CUDA_FAILS": "cuGraphAddNode:1"}
        program.outputs(rows(2, first), 0, runs=1)
        assert len(program.journal.of("replay")) == replays
        assert program.journal.end == NOTHING_LEFT


def test_memory_that_grows(tiny: Maker, tmp_path: Path) -> None:
    """A shape for which the device has no memory is refused, and a smaller one runs then."""
    program = CudaProgram(tiny_plan(tiny), tmp_path)
    (tmp_path / "grows.c").write_text(_GROWS)
    compiled("cc", tmp_path / "grows.c", tmp_path / "grows", tmp_path, "-Wl,-rpath,$ORIGIN", "-L.", "-lnet")
    program.settings = {**program.settings, "FAKE_CUDA_FAILS": "cuMemAlloc:3"}
    done = program.run([tmp_path / "grows"])
    said = f"the device has no memory for {3 * 80128 + 256} bytes of the network's buffers"
    assert (done.returncode, done.stdout) == (0, f"{said}\n{np.cos(1):.6g}\n")
    assert program.journal.end == NOTHING_LEFT


_GROWS = """
#include <stdio.h>
#include "net.h"
int main(void) {
  net_handle *h;
  static float x[40000], y[40000];
  const void *in[] = {x};
  void *out[] = {y, NULL};
  int64_t small[] = {2, 4}, large[] = {5000, 4};
  if (net_create(&h, 0) || net_set_input_shape(h, 0, small, 2) || net_run(h, in, out))
    return 1;
  if (net_set_input_shape(h, 0, large, 2) || net_run(h, in, out) != NET_OUT_OF_MEMORY)
    return 2;
  puts(net_error(h));
  y[0] = 0;
  if (net_set_input_shape(h, 0, small, 2) || net_run(h, in, out))
    return 3;
  printf("%g\\n", y[0]);
  net_destroy(h);
  return 0;
}
"""


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
