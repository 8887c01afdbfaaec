"""The SIMT interpreter executes structured kernels, and each of its checks fires on the mistake that it is for."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import parse_kernel

from mlirt.dialects.kernel.interpreter import OffsetBuffer, run_kernel
from mlirt.dialects.kernel.interpreter_memory import KernelError, OutOfBoundsError, RaceError, UninitializedReadError

RELU = """
kernel.func @relu(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%n, %m) {
  ^bb0(%i: index, %j: index):
    %v = kernel.load %x[%i, %j] strides [%m, 1] : memref<?xf32> -> f32
    %r = arith.maximumf %v, %zero : f32
    kernel.store %r, %y[%i, %j] strides [%m, 1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}
"""


def shift(text: str, distance: int) -> str:
    """Define `%k`, the inner index moved by `distance`."""
    return text.replace(
        "    %v =", f"    %c = arith.constant {distance} : index\n    %k = arith.addi %j, %c : index\n    %v ="
    )


def test_parallel_runs_every_iteration() -> None:
    x = np.linspace(-3, 3, 35, dtype=np.float32).reshape(5, 7)
    y = np.empty_like(x)
    run_kernel(parse_kernel(RELU), [x, y, 5, 7])
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_halo_lies_before_index_zero() -> None:
    x, y = np.arange(-4, 4, dtype=np.float32), np.zeros(6, np.float32)
    shifted = shift(RELU.replace("%x[%i, %j]", "%x[%i, %k]"), -1)
    run_kernel(parse_kernel(shifted), [OffsetBuffer(x, 1), y, 1, 6])
    np.testing.assert_array_equal(y, np.maximum(x[:6], 0))
    with pytest.raises(OutOfBoundsError):
        run_kernel(parse_kernel(shifted), [x, y, 1, 6])


def test_out_of_bounds_names_kernel_op_buffer_index_and_extent() -> None:
    x = np.zeros(34, np.float32)
    with pytest.raises(OutOfBoundsError, match=r"@relu: kernel.load: %x\[34\] is out of bounds: the extent is 34"):
        run_kernel(parse_kernel(RELU), [x, np.zeros(35, np.float32), 5, 7])
    with pytest.raises(OutOfBoundsError, match=r"kernel.store: %y\[35\]"):
        run_kernel(parse_kernel(RELU), [np.zeros(42, np.float32), np.zeros(35, np.float32), 6, 7])


def test_argument_of_another_element_type_is_refused() -> None:
    with pytest.raises(KernelError, match=r"%x is a contiguous array of f32, not ndarray float64"):
        run_kernel(parse_kernel(RELU), [np.zeros(35), np.zeros(35, np.float32), 5, 7])


def test_two_iterations_that_write_one_element_race() -> None:
    collide = RELU.replace("kernel.store %r, %y[%i, %j]", "kernel.store %r, %y[%i, %i]")
    with pytest.raises(RaceError, match=r"%y\[0\] is written"):
        run_kernel(parse_kernel(collide), [np.zeros(35, np.float32), np.zeros(64, np.float32), 5, 7])


def test_an_iteration_that_reads_what_another_one_writes_races() -> None:
    x = np.zeros(36, np.float32)
    shifted = shift(RELU.replace("%y[%i, %j]", "%y[%i, %k]").replace("%x[%i, %j]", "%y[%i, %j]"), 1)
    fault = r"writes %y\[1\] \(by block 0 thread 0\), which block 1 thread 0 reads: blocks are never ordered"
    with pytest.raises(RaceError, match=fault):
        run_kernel(parse_kernel(shifted), [x, x.copy(), 5, 7], updated=[1])


def test_the_same_array_twice_is_one_buffer() -> None:
    x = np.linspace(-3, 3, 35, dtype=np.float32)
    expected = np.maximum(x, 0)
    run_kernel(parse_kernel(RELU), [x, x, 5, 7], updated=[0, 1])
    np.testing.assert_array_equal(x, expected)


def test_reading_what_nobody_wrote_is_an_error() -> None:
    text = RELU.replace("%x[%i, %j]", "%y[%i, %j]")
    arrays = [np.zeros(35, np.float32), np.zeros(35, np.float32)]
    with pytest.raises(UninitializedReadError, match=r"@relu: kernel.load reads %y\[0\], which nobody has written"):
        run_kernel(parse_kernel(text), [*arrays, 5, 7])
    run_kernel(parse_kernel(text), [*arrays, 5, 7], updated=[1])
    run_kernel(parse_kernel(text), [*arrays, 5, 7], check=False)


SUMS = """
kernel.func @rows(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%n) {
  ^bb0(%i: index):
    %s = kernel.reduce add (%i) init %zero : f32 -> f32 {
    ^bb0(%k: index):
      %v = kernel.load %x[%i, %k] strides [%n, 1] : memref<?xf32> -> f32
      kernel.yield %v : f32
    }
    kernel.parallel (%n) {
    ^bb0(%k: index):
      kernel.store %s, %y[%i, %k] strides [%n, 1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}
"""


def test_reduction_of_a_box_that_differs_by_iteration() -> None:
    x = np.arange(36, dtype=np.float32).reshape(6, 6)
    y = np.empty_like(x)
    run_kernel(parse_kernel(SUMS), [x, y, 6])
    np.testing.assert_array_equal(y, np.repeat(np.tril(x, -1).sum(1)[:, None], 6, 1))


CONTROL = """
kernel.func @control(%x: memref<?xi64>, %y: memref<?xi64>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : i64
  %none = arith.constant 0 : i64
  kernel.parallel (%n) {
  ^bb0(%i: index):
    %v = kernel.load %x[%i] strides [1] : memref<?xi64> -> i64
    %sum = scf.for %k = %zero to %i step %one iter_args(%a = %none) -> (i64) {
      %b = arith.addi %a, %v : i64
      scf.yield %b : i64
    }
    %even = arith.remsi %v, %two : i64
    %odd = arith.cmpi ne, %even, %none : i64
    %r = scf.if %odd -> (i64) {
      scf.yield %sum : i64
    } else {
      %w = scf.while (%a = %v) : (i64) -> i64 {
        %go = arith.cmpi sgt, %a, %two : i64
        scf.condition(%go) %a : i64
      } do {
      ^bb0(%a: i64):
        %h = arith.divsi %a, %two : i64
        scf.yield %h : i64
      }
      scf.yield %w : i64
    }
    kernel.store %r, %y[%i] strides [1] : i64, memref<?xi64>
    kernel.yield
  }
  kernel.return
}
"""


def test_lanes_take_their_own_way_through_control_flow() -> None:
    x = np.array([8, 3, 6, 5, 100, 1, 0], np.int64)
    y = np.empty_like(x)
    run_kernel(parse_kernel(CONTROL), [x, y, 7])

    def expected(i: int, v: int) -> int:
        if v % 2:
            return i * v
        while v > 2:
            v //= 2
        return v

    assert list(y) == [expected(i, v) for i, v in enumerate(x.tolist())]
