"""Slice, Split, Concat and Pad against onnxruntime."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node, run_reference

import mlirt
from mlirt.dialects.symbolic import evaluate, sym
from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.frontend.importing.slice_bounds import window


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([0, 1], [2, 3], None, None),
        ([-3], [-1], [1], [1]),
        ([0], [sys.maxsize], [-1], [2]),
        ([-1], [-sys.maxsize], [2], [-1]),
        ([5], [2], [2], [-2]),
        ([20], [0], [1], [-1]),
        ([-9], [-sys.maxsize], [1], [-1]),
        ([3], [3], [1], [1]),
    ],
)
def test_slice(starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None) -> None:
    given_arrays = [None if value is None else np.array(value) for value in (starts, ends, axes, steps)]
    check_node("Slice", [numbers(3, 4, 6), *given_arrays], opset=13, constants=[1, 2, 3, 4])
    if steps in (None, [1]):
        attributes = {"starts": starts, "ends": ends} | ({} if axes is None else {"axes": axes})
        check_node("Slice", [numbers(3, 4, 6)], opset=9, **attributes)


@given(st.integers(0, 12), st.integers(-15, 15), st.integers(-15, 15), st.sampled_from([1, 2, 3, -1, -2]))
def test_windows_are_those_of_python_and_begin_inside(length: int, start: int, end: int, step: int) -> None:
    start = max(start, -length) if step < 0 else start
    end = -(1 << 62) if step < 0 and end < -length else end
    kept = range(length)[start : None if end == -(1 << 62) else end : step]
    first, count = window(length, start, end, step)
    assert count == len(kept)
    assert not kept or first == kept[0]
    symbolic = [evaluate(dim, {"n": length}) for dim in window(sym("n"), start, end, step)]
    assert symbolic[1] == len(kept)
    assert not kept or symbolic[0] == kept[0]
    assert length == 0 or 0 <= symbolic[0] < length


@pytest.mark.parametrize("length", range(8))
def test_bounds_that_are_lengths_may_lie_before_the_front(length: int) -> None:
    n = sym("n")
    for start, end in ((n - 3, n), (0, n - 3), (n - 1, n), (n // 2 - 1, n), (n - 5, n - 2)):
        kept = range(length)[evaluate(start, {"n": length}) : evaluate(end, {"n": length})]
        first, count = (evaluate(dim, {"n": length}) for dim in window(n, start, end, 1))
        assert count == len(kept)
        assert not kept or first == kept[0]


def test_the_last_element_by_its_number_is_one_element() -> None:
    n = sym("n")
    first, count = window(n, n - 1, n, 1)
    assert "*" not in f"{first} {count}".replace("-1*", "")


@pytest.mark.parametrize("before", [-sys.maxsize, -sys.maxsize - 1, -(1 << 31), 1 - (1 << 31)])
def test_a_dynamic_length_turned_round_stays_itself(before: int) -> None:
    assert window(sym("n"), -1, before, -1) == (sym("n") - 1, sym("n"))


def test_slice_of_a_dynamic_length() -> None:
    bounds = {"start": np.array([1]), "end": np.array([sys.maxsize]), "axis": np.array([1])}
    node = helper.make_node("Slice", ["x", "start", "end", "axis"], ["y"])
    model = model_of([node], {"x": ("float32", [2, "n"])}, ["y"], bounds)
    assert_agrees(model, {"x": numbers(2, 5)})


@pytest.mark.parametrize(("opset", "sizes"), [(11, None), (11, [1, 3, 2]), (13, [1, 3, 2]), (13, None)])
def test_split(opset: int, sizes: list[int] | None) -> None:
    x = numbers(6, 2)
    if opset < 13 or sizes is None:
        check_node("Split", [x], opset=opset, outputs=3, **({} if sizes is None else {"split": sizes}))
    else:
        check_node("Split", [x, np.array(sizes)], opset=opset, constants=[1], outputs=3)


def test_split_with_a_smaller_last_part() -> None:
    check_node("Split", [numbers(7, 2)], opset=18, outputs=3, num_outputs=3)


@pytest.mark.parametrize("parts", [2, 3])
def test_split_of_any_length_has_a_smaller_last_part(parts: int) -> None:
    outputs = [f"y{k}" for k in range(parts)]
    node = helper.make_node("Split", ["x"], outputs, axis=0, num_outputs=parts)
    model = model_of([node], {"x": ("float32", ["n", 2])}, outputs, opset=18)
    for length in (6, 7, 8, 5):
        assert_agrees(model, {"x": numbers(length, 2)})


@pytest.mark.parametrize("opset", [11, 13])
def test_equal_parts_of_any_length(opset: int) -> None:
    model = model_of(
        [helper.make_node("Split", ["x"], ["y0", "y1"], name="halves", axis=1)],
        {"x": ("float32", [2, "n"])},
        ["y0", "y1"],
        opset=opset,
    )
    for length in (6, 2):
        assert_agrees(model, {"x": numbers(2, length)})
    with pytest.raises(InvalidInputError, match=r"halves.*length 5 of axis 1 cannot be split into 2 equal parts"):
        run_reference(model, {"x": numbers(2, 5)})


def test_parts_that_do_not_fit_are_refused() -> None:
    model, _ = one_node("Split", [numbers(6, 2), np.array([1, 2])], opset=13, constants=[1], outputs=2)
    with pytest.raises(InvalidModelError, match=r"its parts 1 and 2 add up to 3, but axis 0 has length 6"):
        imported_text(model)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int) -> None:
    check_node("Concat", [numbers(2, 3), numbers(2, 3, seed=1)], opset=13, axis=axis)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(mode: str) -> None:
    pads = np.array([1, 2, 0, 1])
    value = np.array(7, np.float32)
    check_node("Pad", [numbers(3, 4), pads, value], opset=19, constants=[1, 2], mode=mode)
    if mode != "wrap":
        check_node("Pad", [numbers(3, 4)], opset=10, mode=mode, pads=pads.tolist())


def test_pad_of_some_axes_and_crops() -> None:
    check_node("Pad", [numbers(3, 4), np.array([1, 2]), None, np.array([-1])], opset=18, constants=[1, 3])
    check_node("Pad", [numbers(3, 4), np.array([-1, 0, 2, -1])], opset=13, constants=[1])


def test_a_dynamic_pad_is_a_slice_that_starts_outside() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Mul", ["s", "mask"], ["p"]),
        helper.make_node("Concat", ["zeros", "p"], ["pads"], axis=0),
        helper.make_node("Pad", ["x", "pads"], ["y"]),
    ]
    constants = {"mask": np.array([0, 1]), "zeros": np.array([0, 0])}
    model = model_of(nodes, {"x": ("float32", [2, "n"])}, ["y"], constants)
    assert "mode = #trt<slice_mode fill>" in imported_text(model)
    assert_agrees(model, {"x": numbers(2, 3)})


@pytest.mark.parametrize("shape", [(2, 5), (3, 1), (2, 0)])
def test_the_last_part_of_an_axis_is_repeated_beside_the_whole(shape: tuple[int, int]) -> None:
    """Its length is 1, but for an empty axis."""
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["last"]),
        helper.make_node("Sub", ["x", "last"], ["difference"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Expand", ["last", "shape"], ["repeated"]),
        helper.make_node("Mul", ["y", "last"], ["product"]),
    ]
    constants = {"start": np.array([-1]), "end": np.array([2**31]), "axis": np.array([1])}
    inputs = {"x": ("float32", ["b", "t"]), "y": ("float32", ["b", "u"])}
    model = model_of(nodes, inputs, ["difference", "repeated", "product"], constants)
    feeds = {"x": numbers(*shape), "y": numbers(shape[0], shape[1] and 4)}
    assert_agrees(model, feeds)
    got = mlirt.compile(model, "cpu").run(feeds)
    np.testing.assert_array_equal(got["difference"], feeds["x"] - feeds["x"][:, -1:])
    np.testing.assert_array_equal(got["product"], feeds["y"] * feeds["x"][:, -1:])
