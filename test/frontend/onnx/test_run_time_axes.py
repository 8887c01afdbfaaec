"""Axes that are an input of the graph: reductions, Squeeze, Unsqueeze, CumSum, Slice, Pad and Split by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from layer_networks import CollectingLogger
from network_engines import built, cpu_config, parsed, run
from onnx import helper
from onnx_models import check_node, imported_text, model_of, numbers, one_node, run_onnxruntime, small_integers

import mlirt
import mlirt as trt
from mlirt.errors import MlirtError
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.importing.refusals import ValueNeededError

REDUCTIONS = ["Sum", "Prod", "Max", "Min", "Mean", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def check_engine(model: onnx.ModelProto, runs: Sequence[dict[str, Array]], target: str = "cpu") -> None:
    """One engine for all runs, which have other axes."""
    engine = mlirt.compile(model, target)
    for feeds in runs:
        for ours, theirs in zip(engine.run(feeds).values(), run_onnxruntime(model, feeds), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [(1,), (-1, 0), (0, 1, 2)])
def test_reductions(kind: str, keepdims: int, axes: tuple[int, ...]) -> None:
    x = np.abs(numbers(2, 3, 4)) + 0.1
    check_node(f"Reduce{kind}", [x, ints(*axes)], opset=18, keepdims=keepdims)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64", "float16"])
def test_means_of_several_axes_round_once(dtype: str) -> None:
    """The mean of integers rounds toward zero, that of half precision has no rounded mean inside."""
    x = (numbers(3, 5, 7) * 20).astype(dtype)
    feeds = {"in0": x, "in1": ints(0, -1)}
    model, _ = one_node("ReduceMean", list(feeds.values()), opset=18, keepdims=0)
    (found,) = mlirt.compile(model, "reference").run(feeds).values()
    total, count = x.sum((0, 2), dtype=np.int64 if x.dtype.kind == "i" else np.float64), 21
    wanted = np.trunc(total / count) if x.dtype.kind == "i" else total / count
    np.testing.assert_array_equal(found, wanted.astype(dtype))


def test_more_dimensions_than_pairs_of_them_fit() -> None:
    check_node("ReduceSum", [numbers(2, 1, 3, 2, 2, 3), ints(-1, 2, 0)], opset=13, keepdims=0)


@pytest.mark.parametrize("noop", [0, 1])
def test_no_axes(noop: int) -> None:
    """An input without elements is known."""
    model = model_of(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], noop_with_empty_axes=noop)],
        {"x": ("float32", [2, 3]), "axes": ("int64", [0])},
        ["y"],
    )
    check_engine(model, [{"x": numbers(2, 3), "axes": ints()}])


@pytest.mark.parametrize("keepdims", [0, 1])
def test_an_engine_reduces_along_each_axis(keepdims: int) -> None:
    """Lengths of the input come from the run as well."""
    model = model_of(
        [helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=keepdims)],
        {"x": ("float32", [2, "n", 5]), "axes": ("int64", [1])},
        ["y"],
        opset=18,
    )
    check_engine(model, [{"x": numbers(2, n, 5), "axes": ints(axis)} for n in (1, 4) for axis in (0, 1, -1, -3)])


def test_an_axis_without_elements() -> None:
    model, _ = one_node("ReduceSum", [numbers(2, 0, 4), ints(1)], opset=13)
    check_engine(model, [{"in0": numbers(2, 0, 4), "in1": ints(axis)} for axis in (0, 1, 2)])


def test_squeezed() -> None:
    model, feeds = one_node("Squeeze", [numbers(1, 3, 1, 2), ints(0, -2)], opset=13)
    check_engine(model, [feeds, {**feeds, "in1": ints(2, 0)}])
    model, feeds = one_node("Squeeze", [numbers(1, 1), ints(0, -1)], opset=13)
    check_engine(model, [feeds], "reference")


def test_unsqueezed() -> None:
    model, feeds = one_node("Unsqueeze", [numbers(3, 2), ints(0, -1)], opset=13)
    check_engine(model, [{**feeds, "in1": ints(*axes)} for axes in ((0, -1), (3, 1), (1, 2), (-3, 0))])


@pytest.mark.parametrize("other_way", [0, 1])
def test_running_sums(other_way: int) -> None:
    arrays = [numbers(2, 3, 4), np.array(0)]
    model, feeds = one_node("CumSum", arrays, opset=14, exclusive=other_way, reverse=other_way)
    check_engine(model, [{**feeds, "in1": np.array(axis)} for axis in (0, 1, 2, -1, -3)])


def test_parts_along_axes_of_the_run() -> None:
    model, feeds = one_node("Slice", [numbers(4, 5, 6), ints(1, -2), ints(100, 0), ints(0, 2), ints(2, -1)], opset=13)
    check_engine(model, [{**feeds, "in3": ints(*axes)} for axes in ((0, 2), (-1, 1), (1, 0))], "reference")
    model, feeds = one_node("Slice", [numbers(4, 6), ints(-2), ints(-9), ints(0), ints(-1)], opset=13)
    check_engine(model, [{**feeds, "in3": ints(axis)} for axis in (0, 1)])


def test_parts_whose_lengths_the_run_tells() -> None:
    model, feeds = one_node("Split", [numbers(7, 2), ints(3, 4)], opset=13, outputs=2)
    check_engine(model, [{**feeds, "in1": ints(*sizes)} for sizes in ((3, 4), (0, 7), (6, 1))])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_cells_along_axes_of_the_run(mode: str) -> None:
    model, feeds = one_node(
        "Pad", [numbers(3, 4, 5), ints(1, 2, 0, -1), np.array(7, np.float32), ints(0, 2)], opset=18, mode=mode
    )
    target = "cpu" if mode == "constant" else "reference"
    check_engine(model, [{**feeds, "in3": ints(*axes)} for axes in ((0, 2), (2, 1), (-3, -2))], target)


@pytest.mark.parametrize(
    ("op_type", "arrays", "said"),
    [
        ("ReduceSum", [numbers(2, 3), ints(2)], "an axis does not exist; there are 2 dimensions"),
        ("ReduceSum", [numbers(2, 3), ints(-3)], "an axis does not exist"),
        ("Squeeze", [numbers(1, 3, 1), ints(1)], "the length of an axis is not 1"),
        ("Squeeze", [numbers(1, 3, 1), ints(0, -3)], "an axis is given twice"),
        ("Unsqueeze", [numbers(3), ints(2, -1)], "an axis is given twice"),
        ("CumSum", [numbers(3), ints(1)], "an axis does not exist"),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_axes_that_there_are_not(op_type: str, arrays: list[Array], said: str, target: str) -> None:
    model, feeds = one_node(op_type, arrays, opset=14)
    engine = mlirt.compile(model, target)
    with pytest.raises(MlirtError, match=rf"{op_type} \(node 'node'\): {said}"):
        engine.run(feeds)


def test_parts_that_do_not_make_up_the_axis() -> None:
    model, feeds = one_node("Split", [numbers(7, 2), ints(3, 4)], opset=13, outputs=2)
    with pytest.raises(MlirtError, match="axis 0 has length 7"):
        mlirt.compile(model, target="cpu").run({**feeds, "in1": ints(3, 3)})


def test_a_number_of_axes_that_only_the_run_knows_is_asked_for() -> None:
    model = model_of(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], name="total")],
        {"x": ("float32", [2, 3]), "axes": ("int64", ["n"])},
        ["y"],
    )
    with pytest.raises(ValueNeededError, match=r"the axes must be known .* graph input 'axes'") as found:
        imported_text(model)
    assert found.value.inputs == ("axes",)


@pytest.mark.parametrize(
    ("op_type", "arrays", "opset"),
    [("ReduceMax", [numbers(2, 3, 4), ints(1, 2)], 18), ("CumSum", [small_integers(3, 4), np.array(0)], 14)],
)
def test_a_plan_for_a_gpu(op_type: str, arrays: list[Any], opset: int) -> None:
    """It is built without one."""
    model, _ = one_node(op_type, arrays, opset=opset)
    engine = mlirt.compile(model, target="cuda", heuristic=True)
    assert any("node" in str(layer["name"]) for layer in engine.layers)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_are_a_shape_tensor_of_the_parser(keepdims: bool) -> None:
    """tensorrt-features.md#12.5, 12.11: a profile has values for them, by which a context tells the output's shape."""
    model, feeds = one_node("ReduceSum", [numbers(2, 3, 4), ints(1)], opset=13, keepdims=int(keepdims))
    logger = CollectingLogger()
    network = parsed(model, logger)
    assert [network.get_input(k).is_shape_tensor for k in range(2)] == [False, True]
    config = cpu_config(logger)
    profile = trt.Builder(logger).create_optimization_profile()
    profile.set_shape_input("in1", [-3], [1], [2])
    config.add_optimization_profile(profile)
    context = built(network, config, logger).create_execution_context()
    for axis in (-3, 1, 2):
        wanted = feeds["in0"].sum(axis, keepdims=keepdims)
        assert context.set_shape_input(1, [axis])
        assert tuple(context.get_tensor_shape("out0")) == wanted.shape
        found = run(context, {"in0": feeds["in0"], "in1": np.array([axis], np.int32)})
        assert found is not None
        np.testing.assert_allclose(found["out0"], wanted, rtol=1e-5)
