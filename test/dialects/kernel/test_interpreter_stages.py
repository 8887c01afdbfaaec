"""Mistakes in kernels whose threads wait for copies and matrix units: each is found, and told apart."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import parse_kernel

from mlirt.dialects.kernel.interpreter import TensorMap, run_kernel
from mlirt.dialects.kernel.interpreter_coroutines import DeadlockError
from mlirt.dialects.kernel.interpreter_memory import (
    DivergenceError,
    OutOfBoundsError,
    RaceError,
    UninitializedReadError,
)

HEAD = """
kernel.func @product(%a: !kernel.tensor_map<f16, [64, 64], swizzle = 128>, %y: memref<?xf32>)
    attributes {block_size = 160 : i64} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %warps = arith.constant 128 : index
  %steps = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<8192xf16, "shared">
  %size = arith.constant 4096 : index
  %full = kernel.shared : memref<2xi64, "shared">
  %empty = kernel.shared : memref<2xi64, "shared">
  %t = kernel.thread_id : index
  %first = arith.cmpi eq, %t, %0 : index
  scf.if %first {
    scf.for %s = %0 to %2 step %1 {
      kernel.mbarrier_init %full[%s] {arrivals = 1 : i64} : memref<2xi64, "shared">
      kernel.mbarrier_init %empty[%s] {arrivals = 1 : i64} : memref<2xi64, "shared">
    }
    kernel.mbarrier_fence
  }
  // after the barriers are made
  kernel.barrier
  %consumes = arith.cmpi slt, %t, %warps : index
  scf.if %consumes {
    %c = kernel.fill_fragment %zero : f32 -> vector<32xf32>
    %d = scf.for %k = %0 to %steps step %1 iter_args(%accumulators = %c) -> (vector<32xf32>) {
      %stage = arith.remui %k, %2 : index
      %round = arith.divui %k, %2 : index
      %parity = arith.remui %round, %2 : index
      kernel.mbarrier_wait %full[%stage] parity %parity : memref<2xi64, "shared">
      %at = arith.muli %stage, %size : index
      %next = kernel.warpgroup_mma f16 %accumulators, %tiles[%at], %tiles[%at] {columns = 64 : i64} :
        vector<32xf32>, memref<8192xf16, "shared">, memref<8192xf16, "shared"> -> vector<32xf32>
      kernel.warpgroup_wait {pending = 0 : i64}
      scf.if %first {
        kernel.mbarrier_arrive %empty[%stage] : memref<2xi64, "shared">
      }
      scf.yield %next : vector<32xf32>
    }
    %e = kernel.warpgroup_accumulators %d : vector<32xf32> -> vector<32xf32>
    %v = kernel.fragment_part %e {position = 0 : i64} : vector<32xf32> -> vector<1xf32>
    kernel.store_fragment %v, %y[%t] {offsets = array<i64: 0>} : vector<1xf32>, memref<?xf32>
  } else {
    %leads = arith.cmpi eq, %t, %warps : index
    scf.if %leads {
      scf.for %k = %0 to %steps step %1 {
        %stage = arith.remui %k, %2 : index
        %round = arith.divui %k, %2 : index
        %turn = arith.addi %round, %1 : index
        %parity = arith.remui %turn, %2 : index
        kernel.mbarrier_wait %empty[%stage] parity %parity : memref<2xi64, "shared">
        kernel.mbarrier_expect %full[%stage] {bytes = 8192 : i64} : memref<2xi64, "shared">
        %at = arith.muli %stage, %size : index
        %row = arith.muli %k, %warps : index
        kernel.load_box %a[%0, %row], %tiles[%at], %full[%stage] :
          !kernel.tensor_map<f16, [64, 64], swizzle = 128>, memref<8192xf16, "shared">, memref<2xi64, "shared">
      }
    }
  }
  kernel.return
}
"""


def run(text: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 512)).astype(np.float16)
    y = np.zeros(128, np.float32)
    run_kernel(parse_kernel(text), [TensorMap(a, 0, (64, 512), (512, 1)), y], (1,))
    return a.astype(np.float64), y


def changed(before: str, after: str) -> str:
    assert before in HEAD
    return HEAD.replace(before, after, 1)


def test_stages_go_round() -> None:
    a, y = run(HEAD)
    some = a.reshape(64, 4, 128)[:, :, :64].reshape(64, -1)
    want = some @ some.T
    warp, group, pair = np.divmod(np.arange(128), 32)[0], np.arange(128) % 32 // 4, np.arange(128) % 4
    np.testing.assert_allclose(y, want[16 * warp + group, 2 * pair], rtol=1e-5, atol=1e-3)


TURNS = """
kernel.func @turns(%y: memref<?xi64>) attributes {block_size = 256 : i64} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %size = arith.constant 128 : index
  %ready = kernel.shared : memref<1xi64, "shared">
  %t = kernel.thread_id : index
  %first = arith.cmpi eq, %t, %0 : index
  scf.if %first {
    kernel.mbarrier_init %ready[%0] {arrivals = 1 : i64} : memref<1xi64, "shared">
    kernel.mbarrier_fence
  }
  kernel.barrier
  kernel.each_warpgroup {
    %group = arith.divui %t, %size : index
    %waits = arith.cmpi eq, %group, %0 : index
    scf.if %waits {
      kernel.mbarrier_wait %ready[%0] parity %0 : memref<1xi64, "shared">
    }
    %last = arith.cmpi eq, %t, %size : index
    scf.if %last {
      kernel.mbarrier_arrive %ready[%0] : memref<1xi64, "shared">
    }
    kernel.yield
  }
  kernel.return
}
"""


def test_a_warpgroup_may_wait_for_another_one() -> None:
    run_kernel(parse_kernel(TURNS), [np.zeros(1, np.int64)], [1, 1, 1])
    together = TURNS.replace("kernel.each_warpgroup {", "").replace("    kernel.yield\n  }\n", "")
    with pytest.raises(DeadlockError):
        run_kernel(parse_kernel(together), [np.zeros(1, np.int64)], [1, 1, 1])


WAIT_FULL = 'kernel.mbarrier_wait %full[%stage] parity %parity : memref<2xi64, "shared">'
WAIT_EMPTY = 'kernel.mbarrier_wait %empty[%stage] parity %parity : memref<2xi64, "shared">'
ARRIVE = """scf.if %first {
        kernel.mbarrier_arrive %empty[%stage] : memref<2xi64, "shared">
      }"""
WAIT_MMA = "kernel.warpgroup_wait {pending = 0 : i64}"
MISTAKES = {
    "a box begins between pieces of 16 bytes": (
        "%row = arith.muli %k, %warps : index",
        "%even = arith.muli %k, %warps : index\n%row = arith.addi %even, %1 : index",
        OutOfBoundsError,
        "begins at 1 of its innermost dimension is not aligned to 16 bytes",
    ),
    "tiles are read before they are there": (WAIT_FULL, "", UninitializedReadError, "or waited for"),
    "a stage is filled too early": (WAIT_EMPTY, "", RaceError, "nobody has waited for an earlier copy"),
    "a stage is given back too early": (WAIT_MMA, "", RaceError, "while a matrix unit may still read it"),
    "a stage is not given back": (ARRIVE, "", DeadlockError, "1 of 1 arrivals and 0 bytes are missing"),
    "a copy brings less than announced": ("bytes = 8192", "bytes = 8208", DeadlockError, "16 bytes are missing"),
    "all threads arrive": (ARRIVE, ARRIVE.replace("%first", "%consumes"), DeadlockError, "nobody can go on"),
    "barriers are used at once": ("kernel.barrier\n", "", RaceError, "between the initialisation of an mbarrier"),
    "barriers are not made": ("scf.for %s = %0", "scf.for %s = %1", UninitializedReadError, "is no barrier yet"),
    "a part of a warpgroup multiplies": (
        "%warps = arith.constant 128",
        "%warps = arith.constant 96",
        DivergenceError,
        "threads of a warpgroup",
    ),
    "a tile starts anywhere": ("%size = arith.constant 4096", "%size = arith.constant 64", OutOfBoundsError, "1024"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake: str) -> None:
    before, after, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        run(changed(before, after))


@pytest.mark.parametrize(("count", "fits"), [(112, True), (120, False)])
def test_warpgroups_that_ask_for_more_registers_than_there_are(count: int, fits: bool) -> None:
    """Five warpgroups start with 96 for each thread, 480 together: one keeps 24, and the others want the rest."""
    text = f"""
    kernel.func @shares(%y: memref<?xf32>) attributes {{block_size = 640 : i64}} {{
      %four = arith.constant 512 : index
      %t = kernel.thread_id : index
      %copies = arith.cmpi sge, %t, %four : index
      scf.if %copies {{
        kernel.set_registers {{count = 24 : i64}}
      }} else {{
        kernel.set_registers {{count = {count} : i64, grow = true}}
      }}
      kernel.return
    }}"""
    if fits:
        run_kernel(parse_kernel(text), [np.zeros(1, np.float32)], 2)
        return
    with pytest.raises(DeadlockError, match=r"set_registers: warpgroups ask for 64512 registers, .* has 61440"):
        run_kernel(parse_kernel(text), [np.zeros(1, np.float32)], 2)
