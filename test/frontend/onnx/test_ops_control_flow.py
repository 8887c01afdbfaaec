"""If, Loop and Scan against onnxruntime; a branch whose condition is known becomes the nodes of one side."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_control_flow import NESTED, SUM_EVEN, UNEQUAL_BRANCHES, UNTIL_LARGE, scan_model
from onnx_control_flow import model as from_text
from onnx_models import assert_agrees, imported_text, model_of, numbers

from mlirt.errors import InvalidModelError, UnsupportedError


def branching(stored: bool) -> onnx.ModelProto:
    branches: dict[str, Any] = {
        name: helper.make_graph([helper.make_node(op_type, ["x"], ["r"])], name, [], [onnx.ValueInfoProto(name="r")])
        for name, op_type in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    node = helper.make_node("If", ["c"], ["y"], name="choice", **branches)
    inputs: dict[str, tuple[str, list[int | str | None]]] = {"x": ("float32", [3])}
    if not stored:
        inputs["c"] = ("bool", [])
    model = model_of([node], inputs, ["y"], {"c": np.array(False)} if stored else {})
    for branch in model.graph.node[0].attribute:
        branch.g.output[0].CopyFrom(helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [3]))
    return model


def test_a_known_condition_takes_one_branch() -> None:
    model = branching(stored=True)
    text = imported_text(model)
    assert "trt.unary neg" in text
    assert "relu" not in text
    assert_agrees(model, {"x": numbers(3)})


def test_a_condition_of_the_run_is_a_branch() -> None:
    model = branching(stored=False)
    text = imported_text(model)
    assert "scf.if" in text
    for condition in (True, False):
        assert_agrees(model, {"x": numbers(3), "c": np.array(condition)})


@pytest.mark.parametrize("op_type", ["StringNormalizer", "ImageDecoder"])
def test_what_is_not_known_is_refused_with_its_name(op_type: str) -> None:
    model = model_of([helper.make_node(op_type, ["x"], ["y"], name="it")], {"x": ("float32", [3])}, ["y"])
    with pytest.raises(
        UnsupportedError, match=rf"{op_type} \(node 'it', opset 17, domain ai.onnx\) is not supported yet"
    ):
        imported_text(model)


def test_a_branch_in_a_loop() -> None:
    for count in (5, 0):
        assert_agrees(from_text(SUM_EVEN), {"items": numbers(5), "count": np.array(count)})


def test_a_loop_that_ends_by_its_condition() -> None:
    x = np.array([0.5, 1.0, 0.25], np.float32)
    for limit in (1.0, 50.0):
        assert_agrees(from_text(UNTIL_LARGE), {"x": x, "limit": np.array(limit, np.float32)})


def test_branches_of_different_shapes() -> None:
    for condition in (True, False):
        assert_agrees(from_text(UNEQUAL_BRANCHES), {"c": np.array(condition), "x": numbers(3, 4)})


def test_a_loop_in_a_loop() -> None:
    for outer, inner in ((2, 3), (0, 2), (2, 0)):
        assert_agrees(from_text(NESTED), {"x": numbers(2), "outer": np.array(outer), "inner": np.array(inner)})


def test_a_loop_without_an_end_is_refused() -> None:
    text = SUM_EVEN.replace("Loop (count, , zero)", "Loop (, , zero)").replace(", int64 count)", ")")
    with pytest.raises(InvalidModelError, match="neither a trip count nor a condition"):
        imported_text(from_text(text))


def test_a_state_that_grows_without_a_number_of_iterations_is_refused() -> None:
    text = UNTIL_LARGE.replace("b = Mul (a, two)", "b = Concat <axis = 0> (a, a)").replace("float[3] b", "b")
    with pytest.raises(UnsupportedError, match=r"before an iteration and .* it has no trip count"):
        imported_text(from_text(text))


@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (-1, -1)])
@pytest.mark.parametrize("directions", [(0, 0), (1, 1)])
def test_scan(axes: tuple[int, int], directions: tuple[int, int]) -> None:
    made = scan_model(axes, directions, (3, 4))
    assert_agrees(made, {"start": numbers(3 if axes[0] % 2 else 4), "x": numbers(3, 4, seed=1)})
