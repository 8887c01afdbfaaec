"""Branches whose condition is known become their nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import assert_agrees, imported_text, model_of, numbers

from mlirt.errors import UnsupportedError


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


def test_a_condition_of_the_run_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"If \(node 'choice', opset 17, domain ai.onnx\)"):
        imported_text(branching(stored=False))


@pytest.mark.parametrize("op_type", ["Loop", "Scan", "LSTM", "SequenceConstruct"])
def test_what_is_not_known_is_refused_with_its_name(op_type: str) -> None:
    model = model_of([helper.make_node(op_type, ["x"], ["y"], name="it")], {"x": ("float32", [3])}, ["y"])
    with pytest.raises(
        UnsupportedError, match=rf"{op_type} \(node 'it', opset 17, domain ai.onnx\) is not supported yet"
    ):
        imported_text(model)
