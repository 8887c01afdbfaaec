"""Loops beyond their values (tensorrt-features.md#7.11 to 7.16, 7.18): laziness, nesting, memory and profiles."""

from __future__ import annotations

import numpy as np
from boundary_engines import Array, check, engines

from mlirt.runtime.engine import Engine

# No iterator; what is collected lies along the last axis, and from the end.
FREE = """
func.func @main(%z: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4x?xf32>, tensor<?x4xf32>) {
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %r = trt.recurrence %z {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.elementwise sum %r, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  %a = trt.loop_output concatenate %s length(%n : tensor<i32>) {loop = @steps, axis = 1 : i64}
      : (tensor<4xf32>) -> tensor<4x?xf32>
  %b = trt.loop_output reverse %s length(%n : tensor<i32>) {loop = @steps} : (tensor<4xf32>) -> tensor<?x4xf32>
  func.return %a, %b : tensor<4x?xf32>, tensor<?x4xf32>
}
"""
# At the end of the loop the divisor is 0: the quotient of that iteration must not be computed.
GUARDED = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = trt.constant {value = dense<0> : tensor<i32>} : tensor<i32>
  %one = trt.constant {value = dense<1> : tensor<i32>} : tensor<i32>
  %twelve = trt.constant {value = dense<12> : tensor<i32>} : tensor<i32>
  %k = trt.recurrence %n {loop = @steps} : (tensor<i32>) -> tensor<i32>
  %more = trt.elementwise greater %k, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  trt.trip_limit while %more {loop = @steps} : tensor<i1>
  %less = trt.elementwise sub %k, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
  trt.recurrence_next %k, %less : tensor<i32>, tensor<i32>
  %r = trt.recurrence %zero {loop = @steps} : (tensor<i32>) -> tensor<i32>
  %q = trt.elementwise div %twelve, %k : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %s = trt.elementwise sum %r, %q : (tensor<i32>, tensor<i32>) -> tensor<i32>
  trt.recurrence_next %r, %s : tensor<i32>, tensor<i32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<i32>) -> tensor<i32>
  func.return %y : tensor<i32>
}
"""
# The inner loop uses values of the outer one and of neither.
NESTED = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>, %m: tensor<i32>) -> tensor<4xf32> {
  trt.trip_limit count %n {loop = @outer} : tensor<i32>
  %r = trt.recurrence %x {loop = @outer} : (tensor<4xf32>) -> tensor<4xf32>
  trt.trip_limit count %m {loop = @inner} : tensor<i32>
  %q = trt.recurrence %r {loop = @inner} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.elementwise sum %q, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %q, %s : tensor<4xf32>, tensor<4xf32>
  %p = trt.loop_output last_value %q {loop = @inner} : (tensor<4xf32>) -> tensor<4xf32>
  %t = trt.elementwise sub %p, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %t : tensor<4xf32>, tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @outer} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
BYTES = """
func.func @main(%z: tensor<4xi8>, %n: tensor<i32>) -> tensor<4xi8> {
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %r = trt.recurrence %z {loop = @steps} : (tensor<4xi8>) -> tensor<4xi8>
  %s = trt.elementwise sum %r, %z : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  trt.recurrence_next %r, %s : tensor<4xi8>, tensor<4xi8>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xi8>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}
"""
Z = np.arange(4, dtype=np.float32)


def number(value: int) -> Array:
    return np.array(value, np.int32)


def test_without_an_iterator_all_outputs_are_supported() -> None:
    """tensorrt-features.md#7.11: along any axis, and in reverse."""
    runs = engines(FREE)
    for count in (3, 0, 1):
        rows = np.array([Z * (k + 2) for k in range(count)], np.float32).reshape(count, 4)
        check(runs, {"z": Z, "n": number(count)}, [rows.T, rows[::-1]])


def test_what_comes_after_the_last_iteration_is_not_computed() -> None:
    """tensorrt-features.md#7.12: integers divided by 0 would end the process on the CPU."""
    runs = engines(GUARDED)
    for count, expected in ((3, 12 + 6 + 4), (0, 0)):
        check(runs, {"n": number(count)}, [number(expected)])


def test_a_loop_in_a_loop() -> None:
    """tensorrt-features.md#7.13: nesting follows from the data flow; test_refused_networks.py has what is refused."""
    runs = engines(NESTED)
    for outer, inner in ((2, 3), (0, 2), (3, 0), (1, 1)):
        state = Z
        for _ in range(outer):
            state = state + inner * state - Z
        check(runs, {"x": Z, "n": number(outer), "m": number(inner)}, [state])


def test_memory_grows_with_what_is_collected() -> None:
    """tensorrt-features.md#7.16: the size of dynamic dimensions bounds the memory; more iterations never take less."""
    (_, engine) = engines(FREE)
    sizes: list[int] = []
    for count in (1, 10, 100, 1000):
        results = engine.run({"z": Z, "n": number(count)})
        sizes.append(sum(array.nbytes for array in results.values()))
    assert sizes == sorted(sizes)
    assert sizes[-1] == 2 * 1000 * 16


def test_bytes_go_round_too() -> None:
    """In IR bytes may stand in a loop, too."""
    runs = engines(BYTES)
    z = np.arange(4, dtype=np.int8)
    check(runs, {"z": z, "n": number(5)}, [z * 6])


def test_a_profile_adds_up_the_iterations() -> None:
    """tensorrt-features.md#7.18: a layer of a loop has one entry, however often it runs."""
    (_, engine) = engines(NESTED)
    assert isinstance(engine, Engine)
    once = engine.profile({"x": Z, "n": number(1), "m": number(1)})
    often = engine.profile({"x": Z, "n": number(9), "m": number(9)})
    assert [name for name, _ in once] == [name for name, _ in often]
    assert all(time >= 0 for _, time in often)
