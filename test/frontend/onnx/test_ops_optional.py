"""Optional values whose presence the model says."""

from __future__ import annotations

from onnx import TensorProto, helper
from onnx_models import imported_text, numbers, one_node


def test_a_tensor_is_there() -> None:
    model, _ = one_node("OptionalHasElement", [numbers(2)], opset=18)
    assert "dense<true>" in imported_text(model)
    model, _ = one_node("OptionalGetElement", [numbers(2)], opset=18)
    assert "func.return %in0" in imported_text(model)


def test_an_input_that_is_left_out_is_not_there() -> None:
    output = helper.make_tensor_value_info("y", TensorProto.BOOL, [])
    graph = helper.make_graph([helper.make_node("OptionalHasElement", [], ["y"])], "g", [], [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    assert "dense<false>" in imported_text(model)
