"""An engine for CUDA devices as a C library: it asks a driver, a fake one, for what the Python runtime asks it for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from c_programs import NEEDS_COMPILER, assert_same_bits, compiled
from emulated_networks import networks
from fake_cuda import NOTHING_LEFT, CudaProgram, python_runs, rows
from fake_driver import Maker, cuda_plan
from fuzz_cases import Case
from onnx import parser
from onnx_control_flow import SUM_EVEN
from onnx_models import Array
from small_network import network

import mlirt
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan

pytestmark = NEEDS_COMPILER

SIGN_AND_EXPONENT = {"buffer": 0, "offset": 3}


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
