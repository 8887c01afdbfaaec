"""Networks with the borders of loops and conditionals: the CPU and the interpreter against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from boundary_engines import Array, check, engines

from mlirt.errors import InvalidInputError

ROWS = '#trt.dims<["n", "4"]>'
COLLECT = f"""
func.func @main(%x: tensor<?x4xf32, {ROWS}>, %z: tensor<4xf32>, %n: tensor<i32>, %m: tensor<i32>)
    -> (tensor<4xf32>, tensor<?x4xf32>, tensor<4x?xf32>) {{
  trt.trip_limit count %n {{loop = @steps}} : tensor<i32>
  %e = trt.iterator %x {{loop = @steps}} : (tensor<?x4xf32, {ROWS}>) -> tensor<4xf32>
  %b = trt.iterator %x {{loop = @steps, reverse = true}} : (tensor<?x4xf32, {ROWS}>) -> tensor<4xf32>
  %r = trt.recurrence %z {{loop = @steps}} : (tensor<4xf32>) -> tensor<4xf32>
  %p = trt.elementwise prod %e, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = trt.elementwise sum %r, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  %last = trt.loop_output last_value %r {{loop = @steps}} : (tensor<4xf32>) -> tensor<4xf32>
  %all = trt.loop_output concatenate %s length(%m : tensor<i32>) {{loop = @steps}} : (tensor<4xf32>) -> tensor<?x4xf32>
  %back = trt.loop_output reverse %r length(%m : tensor<i32>) {{loop = @steps, axis = 1 : i64}}
      : (tensor<4xf32>) -> tensor<4x?xf32>
  func.return %last, %all, %back : tensor<4xf32>, tensor<?x4xf32>, tensor<4x?xf32>
}}
"""
GROW = """
func.func @main(%z: tensor<f32>, %top: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %r = trt.recurrence %z {loop = @steps} : (tensor<f32>) -> tensor<f32>
  %b = trt.elementwise less %r, %top : (tensor<f32>, tensor<f32>) -> tensor<i1>
  trt.trip_limit while %b {loop = @steps} : tensor<i1>
  %s = trt.elementwise sum %r, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
  trt.recurrence_next %r, %s : tensor<f32>, tensor<f32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<f32>) -> tensor<f32>
  func.return %y : tensor<f32>
}
"""
SWAP = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %p = trt.recurrence %a {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %q = trt.recurrence %b {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %p, %q : tensor<4xf32>, tensor<4xf32>
  trt.recurrence_next %q, %p : tensor<4xf32>, tensor<4xf32>
  %x = trt.loop_output last_value %p {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.loop_output last_value %q {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %x, %y : tensor<4xf32>, tensor<4xf32>
}
"""


def collected(x: Array, z: Array, iterations: int, room: int) -> list[Array]:
    sums, state = np.zeros((room, 4), np.float32), z
    before = np.zeros((4, room), np.float32)
    for iteration in range(iterations):
        before[:, room - 1 - iteration] = state
        state = state + x[iteration] * x[len(x) - 1 - iteration]
        sums[iteration] = state
    return [state, sums, before]


def test_iterators_and_what_is_collected() -> None:
    """tensorrt-features.md#7.2, 7.6, 7.9 and 7.10: what is beyond the last iteration is 0."""
    runs = engines(COLLECT)
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    for iterations, room in ((6, 6), (0, 0), (3, 3), (2, 5), (0, 2)):
        feeds = {"x": x, "z": x[1], "n": np.array(iterations, np.int32), "m": np.array(room, np.int32)}
        check(runs, feeds, collected(x, x[1], iterations, room))


@pytest.mark.parametrize(
    ("iterations", "room", "message"),
    [(7, 9, "past the end of its iterator"), (3, 2, "more iterations than its output is long")],
)
def test_runs_beyond_an_end_are_errors(iterations: int, room: int, message: str) -> None:
    """tensorrt-features.md#7.6 and 7.9."""
    x = np.ones((6, 4), np.float32)
    for engine in engines(COLLECT):
        with pytest.raises(InvalidInputError, match=message):
            engine.run({"x": x, "z": x[0], "n": np.array(iterations, np.int32), "m": np.array(room, np.int32)})


def test_a_condition_and_a_count() -> None:
    """tensorrt-features.md#7.3, 7.4 and 7.8."""
    runs = engines(GROW)
    for top, count, expected in ((10.0, 100, 16.0), (10.0, 2, 4.0), (0.5, 5, 1.0), (10.0, 0, 1.0)):
        feeds = {"z": np.float32(1), "top": np.float32(top), "n": np.int32(count)}
        check(runs, {name: np.asarray(value) for name, value in feeds.items()}, [np.array(expected, np.float32)])


def test_values_that_change_places() -> None:
    """tensorrt-features.md#7.7: all next values are those of the iteration before."""
    runs = engines(SWAP)
    a, b = np.arange(4, dtype=np.float32), -np.arange(4, dtype=np.float32)
    for count in (0, 1, 2, 5):
        check(runs, {"a": a, "b": b, "n": np.array(count, np.int32)}, [b, a] if count % 2 else [a, b])


def test_lengths_without_names() -> None:
    runs = engines(
        COLLECT.replace(f", {ROWS}", "")
        .replace("tensor<4xf32>", "tensor<?xf32>")
        .replace("x4xf", "x?xf")
        .replace("<4x?", "<?x?")
    )
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    for iterations, room in ((5, 5), (0, 0), (2, 3)):
        feeds = {"x": x, "z": x[1], "n": np.array(iterations, np.int32), "m": np.array(room, np.int32)}
        check(runs, feeds, collected(x, x[1], iterations, room))
