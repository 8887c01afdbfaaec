"""Networks with lengths that only the run tells, on NumPy and on the CPU, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper
from onnx_models import model_of, run_onnxruntime

import mlirt
from mlirt.errors import InvalidInputError
from mlirt.frontend.importing.number_arrays import Array

Feeds = Mapping[str, Array]
X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)


def _ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def _check(model: onnx.ModelProto, runs: Sequence[Feeds], targets: Sequence[str] = ("reference", "cpu")) -> None:
    """One engine for all runs: each of them may have other lengths."""
    for target in targets:
        engine = mlirt.compile(model, target)
        for feeds in runs:
            found = list(engine.run(feeds).values())
            for ours, theirs in zip(found, run_onnxruntime(model, feeds), strict=True):
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
                np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def _network(nodes: Sequence[NodeProto], *vectors: tuple[str, int], opset: int = 17, **scalars: str) -> onnx.ModelProto:
    inputs: dict[str, tuple[str, list[int | str]]] = {"x": ("float32", [3, "m"])}
    inputs.update((name, ("int64", [length])) for name, length in vectors)
    inputs.update((name, (dtype, [])) for name, dtype in scalars.items())
    return model_of(nodes, inputs, ["y"], opset=opset)


def test_positions_of_what_is_not_zero() -> None:
    model = _network([helper.make_node("NonZero", ["x"], ["y"])])
    _check(model, [{"x": X}, {"x": np.zeros_like(X)}, {"x": np.ones((3, 7), np.float32)}])


@pytest.mark.parametrize("attributes", [{}, {"axis": 0}])
def test_chosen_slices_flow_into_further_layers(attributes: dict[str, int]) -> None:
    nodes = [
        helper.make_node("Cast", ["c"], ["chosen"], to=onnx.TensorProto.BOOL),
        helper.make_node("Compress", ["x", "chosen"], ["few"], **attributes),  # pyright: ignore[reportArgumentType]
        helper.make_node("Exp", ["few"], ["y"]),
    ]
    runs = [{"x": X, "c": _ints(*flags)} for flags in ((0, 1, 1), (0, 0, 0), (1, 1, 1))]
    _check(_network(nodes, ("c", 3)), runs)


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_slices(step: int) -> None:
    nodes = [
        helper.make_node("Constant", [], ["axes"], value_ints=[1, 0]),
        helper.make_node("Constant", [], ["steps"], value_ints=[step, 1]),
        helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"]),
    ]
    bounds = [((0, 0), (4, 3)), ((-1, 1), (-100, 2)), ((3, -2), (0, 100)), ((100, 0), (-9, -1)), ((2, 2), (2, 1))]
    runs = [{"x": X, "starts": _ints(*starts), "ends": _ints(*ends)} for starts, ends in bounds]
    _check(_network(nodes, ("starts", 2), ("ends", 2)), runs)


def test_slices_by_steps_of_the_run() -> None:
    nodes = [
        helper.make_node("Constant", [], ["axes"], value_ints=[1, 0]),
        helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"]),
    ]
    model = _network(nodes, ("starts", 2), ("ends", 2), ("steps", 2))
    cases = [
        ((0, 0), (4, 3), (1, 1)),
        ((-1, 1), (-100, 2), (-1, 1)),
        ((3, -1), (0, -9), (-2, -2)),
        ((100, 0), (-9, 100), (-3, 3)),
        ((2, 2), (2, 1), (1, -1)),
        ((0, 0), (4, 3), (100, 2)),
    ]
    runs = [{"x": X, "starts": _ints(*a), "ends": _ints(*b), "steps": _ints(*c)} for a, b, c in cases]
    _check(model, runs)
    for target in ("reference", "cpu"):
        with pytest.raises(InvalidInputError, match=r"Slice_1.*expected steps other than 0"):
            mlirt.compile(model, target).run(runs[0] | {"steps": _ints(1, 0)})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("has_value", [False, True])
def test_pads(mode: str, has_value: bool) -> None:
    nodes = [
        helper.make_node("Constant", [], ["value"], value_float=7.0),
        helper.make_node("Pad", ["x", "pads", "value" if has_value else ""], ["y"], mode=mode),
    ]
    amounts = [(0, 0, 0, 0), (1, 2, 2, 1), (2, 0, 0, 3), (0, 3, 1, 0)]
    if mode == "constant":
        amounts += [(-1, 2, 0, -3), (0, -2, -2, 5), (9, 0, 0, 11)]
    _check(_network(nodes, ("pads", 4), opset=19), [{"x": X, "pads": _ints(*pads)} for pads in amounts])


def test_pads_of_one_axis_that_a_count_decides() -> None:
    """Rows are filled up to as many as the numbers that are not zero."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Shape", ["places"], ["count"], start=1, end=2),
        helper.make_node("Constant", [], ["zero"], value_ints=[0]),
        helper.make_node("Constant", [], ["axes"], value_ints=[-1]),
        helper.make_node("Concat", ["zero", "count"], ["pads"], axis=0),
        helper.make_node("Pad", ["x", "pads", "", "axes"], ["y"]),
    ]
    _check(_network(nodes, opset=19), [{"x": X}, {"x": np.zeros_like(X)}])


def test_shapes() -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["a"]),
        helper.make_node("ConstantOfShape", ["s2"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    model = _network(nodes, ("s", 3), ("s2", 3))
    cases = [((3, 1, 4), (3, 1, 4)), ((0, -1, 1), (3, 4, 1)), ((-1, 1, 1), (12, 1, 1))]
    _check(model, [{"x": X, "s": _ints(*shape), "s2": _ints(*wide)} for shape, wide in cases])


def test_shapes_that_do_not_fit_leave_nothing_behind() -> None:
    """Each run comes after one whose sizes are in its way, or make no sense at all."""
    model = _network([helper.make_node("Reshape", ["x", "s"], ["y"])], ("s", 2))
    _check(model, [{"x": X, "s": _ints(*shape)} for shape in ((2, 6), (3, 4), (12, 1), (1, 12))])
    for target in ("reference", "cpu"):
        engine = mlirt.compile(model, target)
        for shape in ((5, 5), (7, -1), (0, 2), (-1, -1)):
            with pytest.raises(InvalidInputError, match="another number of elements than there are"):
                engine.run({"x": X, "s": _ints(*shape)})
            assert engine.run({"x": X, "s": _ints(-1, 6)})["y"].shape == (2, 6)


def test_expansion_to_a_shape() -> None:
    model = _network([helper.make_node("Expand", ["x", "s"], ["y"])], ("s", 3))
    _check(model, [{"x": X, "s": _ints(*shape)} for shape in ((2, 3, 4), (5, 1, 1), (1, 3, 1))])
    for target in ("reference", "cpu"):
        with pytest.raises(InvalidInputError, match=r"Expand_0.* must be equal"):
            mlirt.compile(model, target).run({"x": X, "s": _ints(2, 3, 5)})


def test_tiles() -> None:
    model = _network([helper.make_node("Tile", ["x", "r"], ["y"])], ("r", 2))
    _check(model, [{"x": X, "r": _ints(*repeats)} for repeats in ((1, 3), (2, 1), (2, 2))])


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_ranges(dtype: str) -> None:
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["y"])]
    model = model_of(nodes, {name: (dtype, []) for name in "abc"}, ["y"])
    cases = [(0, 5, 1), (3, -4, -2), (2, 2, 1), (5, 1, 3)]
    _check(model, [{name: np.array(value, dtype) for name, value in zip("abc", case, strict=True)} for case in cases])


@pytest.mark.parametrize("largest", [0, 1])
def test_how_many_are_the_largest(largest: int) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=1, largest=largest)
    runs = [{"x": X, "k": _ints(k)} for k in (2, 4, 1, 0)]
    _check(_network([node], ("k", 1)), runs)
    engine = mlirt.compile(_network([node], ("k", 1)), "cpu")
    with pytest.raises(InvalidInputError, match="k is not between 0 and the length of axis 1"):
        engine.run({"x": X, "k": _ints(5)})


def test_all_along_a_dimension_in_order() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["k"], start=1, end=2),
        helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=1),
    ]
    _check(_network(nodes), [{"x": X}, {"x": np.ones((3, 7), np.float32)}])
