"""Mistakes in kernels that multiply into tensor memory: each is found, and told apart."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import parse_kernel

from mlirt.dialects.kernel.interpreter import TensorMap, run_kernel
from mlirt.dialects.kernel.interpreter_coroutines import DeadlockError
from mlirt.dialects.kernel.interpreter_memory import (
    DivergenceError,
    KernelError,
    OutOfBoundsError,
    RaceError,
    UninitializedReadError,
)

HEAD = """
kernel.func @product(%a: !kernel.tensor_map<f16, [128, 64], swizzle = 128>, %y: memref<?xf32>)
    attributes {block_size = 192 : i64} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %warp_size = arith.constant 32 : index
  %width = arith.constant 64 : index
  %lane = arith.constant 65536 : index
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<16384xf16, "shared">
  %size = arith.constant 8192 : index
  %full = kernel.shared : memref<2xi64, "shared">
  %empty = kernel.shared : memref<2xi64, "shared">
  %done = kernel.shared : memref<1xi64, "shared">
  %free = kernel.shared : memref<1xi64, "shared">
  %place = kernel.shared : memref<1xi32, "shared">
  %t = kernel.thread_id : index
  %warp = arith.divui %t, %warp_size : index
  %first = arith.cmpi eq, %t, %0 : index
  scf.if %first {
    scf.for %s = %0 to %2 step %1 {
      kernel.mbarrier_init %full[%s] {arrivals = 1 : i64} : memref<2xi64, "shared">
      kernel.mbarrier_init %empty[%s] {arrivals = 1 : i64} : memref<2xi64, "shared">
    }
    kernel.mbarrier_init %done[%0] {arrivals = 1 : i64} : memref<1xi64, "shared">
    kernel.mbarrier_init %free[%0] {arrivals = 4 : i64} : memref<1xi64, "shared">
    kernel.mbarrier_fence
  }
  %multiplies = arith.cmpi eq, %warp, %5 : index
  scf.if %multiplies {
    kernel.tensor_memory_allocate %place[%0] {columns = 64 : i64} : memref<1xi32, "shared">
    kernel.tensor_memory_relinquish
  }
  kernel.barrier
  %word = kernel.load %place[%0] strides [1] : memref<1xi32, "shared"> -> i32
  %address = arith.index_cast %word : i32 to index
  %writes = arith.cmpi slt, %warp, %4 : index
  scf.if %writes {
    %half = arith.muli %warp, %warp_size : index
    %up = arith.muli %half, %lane : index
    %own = arith.addi %address, %up : index
    scf.for %i = %0 to %2 step %1 {
      kernel.mbarrier_wait %done[%0] parity %i : memref<1xi64, "shared">
      kernel.tensor_fence {after} // behind the wait for the product
      %v = kernel.tensor_memory_load %own : vector<32xf32>
      kernel.tensor_fence
      %number = arith.remui %t, %warp_size : index
      %leads = arith.cmpi eq, %number, %0 : index
      scf.if %leads {
        kernel.mbarrier_arrive %free[%0] : memref<1xi64, "shared">
      }
      %p = kernel.fragment_part %v {position = 0 : i64} : vector<32xf32> -> vector<1xf32>
      kernel.store_fragment %p, %y[%t] {offsets = array<i64: 0>} : vector<1xf32>, memref<?xf32>
    }
  } else {
    %one = arith.remui %t, %warp_size : index
    %leads = arith.cmpi eq, %one, %0 : index
    scf.if %leads {
      scf.if %multiplies {
        scf.for %i = %0 to %2 step %1 {
          %before = arith.subi %1, %i : index
          kernel.mbarrier_wait %free[%0] parity %before : memref<1xi64, "shared">
          scf.for %k = %0 to %2 step %1 {
            kernel.mbarrier_wait %full[%k] parity %i : memref<2xi64, "shared">
            kernel.tensor_fence {after} // behind the wait for the tiles
            %more = arith.cmpi ne, %k, %0 : index
            %at = arith.muli %k, %size : index
            kernel.tensor_mma f16 %address, %more, %tiles[%at], %tiles[%at] {columns = 64 : i64} :
              memref<16384xf16, "shared">, memref<16384xf16, "shared">
            kernel.tensor_commit %empty[%k] : memref<2xi64, "shared">
          }
          kernel.tensor_commit %done[%0] : memref<1xi64, "shared">
        }
      } else {
        scf.for %i = %0 to %2 step %1 {
          %before = arith.subi %1, %i : index
          scf.for %k = %0 to %2 step %1 {
            kernel.mbarrier_wait %empty[%k] parity %before : memref<2xi64, "shared">
            kernel.mbarrier_expect %full[%k] {bytes = 16384 : i64} : memref<2xi64, "shared">
            %at = arith.muli %k, %size : index
            %column = arith.muli %k, %width : index
            kernel.load_box %a[%0, %column], %tiles[%at], %full[%k] :
              !kernel.tensor_map<f16, [128, 64], swizzle = 128>, memref<16384xf16, "shared">, memref<2xi64, "shared">
          }
        }
      }
    }
  }
  kernel.barrier // in front of the release
  scf.if %multiplies {
    kernel.tensor_memory_free %address {columns = 64 : i64}
  }
  kernel.return
}
"""


def run(text: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((128, 128)).astype(np.float16)
    y = np.zeros(128, np.float32)
    run_kernel(parse_kernel(text), [TensorMap(a, 0, (128, 128), (128, 1)), y], (1,))
    return a.astype(np.float64), y


def changed(before: str, after: str) -> str:
    assert before in HEAD
    return HEAD.replace(before, after, 1)


def test_a_product_and_another_one_into_the_same_columns() -> None:
    a, y = run(HEAD)
    t = np.arange(128)
    np.testing.assert_allclose(y, (a @ a.T)[32 * (t // 32) + t % 32 // 4, t % 4 * 2], rtol=1e-5, atol=1e-3)


WAIT_DONE = 'kernel.mbarrier_wait %done[%0] parity %i : memref<1xi64, "shared">'
COMMIT_DONE = 'kernel.tensor_commit %done[%0] : memref<1xi64, "shared">'
COMMIT_EMPTY = 'kernel.tensor_commit %empty[%k] : memref<2xi64, "shared">'
WAIT_FREE = 'kernel.mbarrier_wait %free[%0] parity %before : memref<1xi64, "shared">'
WAIT_EMPTY = 'kernel.mbarrier_wait %empty[%k] parity %before : memref<2xi64, "shared">'
WAIT_FULL = 'kernel.mbarrier_wait %full[%k] parity %i : memref<2xi64, "shared">'
ARRIVE = 'kernel.mbarrier_arrive %empty[%k] : memref<2xi64, "shared">'
FREE = "kernel.tensor_memory_free %address {columns = 64 : i64}"
FENCE = "kernel.tensor_fence {after} // behind the wait for the"
BARRIER = "kernel.barrier // in front of the release"
RELINQUISH = "kernel.tensor_memory_relinquish"
AGAIN = 'kernel.tensor_memory_allocate %place[%0] {columns = 64 : i64} : memref<1xi32, "shared">'
LOAD = "%v = kernel.tensor_memory_load %own : vector<32xf32>"
MISTAKES: dict[str, tuple[str, str, type[KernelError], str]] = {
    "no wait for the product": (WAIT_DONE, "", UninitializedReadError, "no product has written"),
    "no commit of the product": (COMMIT_DONE, "", DeadlockError, "arrivals"),
    "tiles given back at once": (COMMIT_EMPTY, ARRIVE, RaceError, "while a matrix unit may still read it"),
    "no wait for the tiles": (WAIT_FULL, "", UninitializedReadError, "nobody has written"),
    "no wait before the copy": (WAIT_EMPTY, "", RaceError, "%tiles"),
    "no wait for the loads": (WAIT_FREE, "", RaceError, "a warp may still load"),
    "no fence behind the wait": (f"{FENCE} product", "", RaceError, "no fence"),
    "no fence in front of the product": (f"{FENCE} tiles", "", RaceError, "no fence"),
    "no fence behind the loads": ("kernel.tensor_fence\n", "", RaceError, "a warp may still load"),
    "no barrier in front of the release": (BARRIER, "", RaceError, "no barrier between"),
    "no release": (FREE, "", KernelError, "has not freed"),
    "a release of more": (FREE, FREE.replace("64", "128"), KernelError, "has not allocated 128"),
    "adds to nothing": ("%more = arith.cmpi ne", "%more = arith.cmpi eq", UninitializedReadError, "adds to"),
    "lanes of other warps": ("%half = arith.muli %warp,", "%half = arith.muli %0,", OutOfBoundsError, "from lane 0"),
    "an address of its own": ("%own = arith.addi %address", "%own = arith.addi %t", DivergenceError, "different"),
    "asks again": (RELINQUISH, f"{RELINQUISH}\n    {AGAIN}", KernelError, "allocates no more"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    before, after, error, said = MISTAKES[name]
    with pytest.raises(error, match=said):
        run(changed(before, after))


def test_columns_that_are_not_allocated() -> None:
    text = changed(LOAD, LOAD.replace("<32", "<64")).replace("0 : i64} : vector<32xf32>", "0 : i64} : vector<64xf32>")
    with pytest.raises(OutOfBoundsError, match="not allocated"):
        run(text)
