"""All nodes that cannot be computed are told at once, in branches too, as text and as data."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from mlirt.dialects.context import RtContext
from mlirt.errors import UnsupportedError, UnsupportedOperatorsError
from mlirt.frontend.onnx.importer import import_model
from mlirt.frontend.onnx.missing_operators import missing_operators


def _model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy")
    graph = helper.make_graph(list(nodes), "graph", [x], [y])
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def _own(name: str, inputs: str, outputs: str, op: str = "Strange") -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), name=name, domain="own")


def test_all_are_listed_with_count_and_nodes() -> None:
    model = _model(
        _own("first", "x", "a"), helper.make_node("Det", ["a"], ["b"], name="det"), _own("second", "b", "c"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    )  # fmt: skip
    with pytest.raises(UnsupportedOperatorsError, match=r"3 nodes cannot be taken: Strange \(own\) \| 2 \|") as caught:
        import_model(model, RtContext())
    table = {(one.operator, one.domain): one for one in caught.value.refusals}
    assert table["Strange", "own"].nodes == ("first", "second")
    assert table["Det", "ai.onnx"].count == 1
    assert "plugin" in table["Det", "ai.onnx"].way_out


def test_one_node_is_told_as_before() -> None:
    with pytest.raises(UnsupportedError, match="getPluginCreator") as caught:
        import_model(_model(_own("only", "x", "y")), RtContext())
    assert not isinstance(caught.value, UnsupportedOperatorsError)


def test_nodes_in_branches_count() -> None:
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 2])
    branch = helper.make_graph([_own("inner", "x", "z", op="Odd")], "branch", [], [value])
    condition = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("t", TensorProto.BOOL, [], [True]))
    chosen = helper.make_node("If", ["c"], ["y"], name="if", then_branch=branch, else_branch=branch)
    (refusal,) = missing_operators(_model(condition, chosen))
    assert (refusal.operator, refusal.count) == ("Odd", 2)


def test_functions_of_onnx_are_known() -> None:
    assert missing_operators(_model(helper.make_node("Celu", ["x"], ["y"]))) == ()


def test_a_refused_form_is_listed_beside_missing_operators() -> None:
    text = helper.make_node("Constant", [], ["k"], name="words", value_string="text")
    with pytest.raises(UnsupportedOperatorsError) as caught:
        import_model(_model(text, _own("own", "xk", "y")), RtContext())
    strange, constant = caught.value.refusals
    assert (strange.operator, strange.nodes) == ("Strange", ("own",))
    assert constant.operator == "Constant"
    assert "value_string" in constant.why
