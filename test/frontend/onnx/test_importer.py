"""What the importer keeps of a model: names, weights, dynamic dimensions; and what it says of damaged ones."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import imported_text, model_of, numbers, one_node
from xdsl.dialects.func import FuncOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.locations import name_of
from mlirt.dialects.verification import verify
from mlirt.errors import InvalidInputError, InvalidModelError, UnsupportedError
from mlirt.frontend.onnx.importer import import_model


def two_layers() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["data/x", "w"], ["c"], name="conv1"),
        helper.make_node("Relu", ["c"], ["y.z"]),
    ]
    return model_of(nodes, {"data/x": ("float32", ["batch size", 3, None, 8])}, ["y.z"], {"w": numbers(16, 3, 3, 3)})


def test_the_text_of_a_small_network() -> None:
    assert imported_text(two_layers()) == (
        "builtin.module {\n"
        "  func.func @main(%data$x: tensor<?x3x?x8xf32,"
        ' #trt.dims<["batch_size", "3", "data_x_d2", "8"]>> {trt.name = "data/x"})'
        ' -> (tensor<?x16x?x6xf32, #trt.dims<["batch_size", "16", "data_x_d2 - 2", "6"]>> {trt.name = "y.z"}) {\n'
        '    %w = trt.constant {value = #trt.weights<"w", "' + digest() + '">} : tensor<16x3x3x3xf32>\n'
        "    %c = trt.convolution %data$x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>,"
        " pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} :"
        ' (tensor<?x3x?x8xf32, #trt.dims<["batch_size", "3", "data_x_d2", "8"]>>, tensor<16x3x3x3xf32>)'
        ' -> tensor<?x16x?x6xf32, #trt.dims<["batch_size", "16", "data_x_d2 - 2", "6"]>>\n'
        "    %y.z = trt.activation relu %c :"
        ' (tensor<?x16x?x6xf32, #trt.dims<["batch_size", "16", "data_x_d2 - 2", "6"]>>)'
        ' -> tensor<?x16x?x6xf32, #trt.dims<["batch_size", "16", "data_x_d2 - 2", "6"]>>\n'
        '    func.return %y.z : tensor<?x16x?x6xf32, #trt.dims<["batch_size", "16", "data_x_d2 - 2", "6"]>>\n'
        "  }\n"
        "}\n"
    )


def digest() -> str:
    from mlirt.dialects.weights import digest_of

    return digest_of(numbers(16, 3, 3, 3))


def test_locations_are_the_names_of_nodes() -> None:
    module = import_model(two_layers(), RtContext())
    verify(module)
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    assert [name_of(op) for op in function.body.block.ops] == ["conv1", "conv1", "Relu_1", "func.return"]


def test_weights_are_in_the_store() -> None:
    ctx = RtContext()
    import_model(two_layers(), ctx)
    ((key, array),) = ctx.weights.items()
    assert key == "w"
    np.testing.assert_array_equal(array, numbers(16, 3, 3, 3))


def test_equal_names_are_equal_dimensions() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    inputs = {"a": ("float32", ["n", 3]), "b": ("float32", ["n", 3])}
    assert '-> (tensor<?x3xf32, #trt.dims<["n", "3"]>>' in imported_text(model_of([node], inputs, ["y"]))


def test_names_that_become_equal_stay_apart() -> None:
    node = helper.make_node("Concat", ["a", "b"], ["y"], axis=0)
    inputs = {"a": ("float32", ["x.0", 3]), "b": ("float32", ["x/0", 3])}
    assert '"x_0 + x_0_2"' in imported_text(model_of([node], inputs, ["y"]))


def test_shapes_can_be_given() -> None:
    text = imported_text(two_layers(), input_shapes={"data/x": [2, 3, "2*h + 1", 8]})
    assert "tensor<2x3x?x8xf32" in text
    assert '["2", "16", "2*h - 1", "6"]' in text


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"nope": [1]}, "the model has no input 'nope'; its inputs are"),
        ({"data/x": [1, 3]}, "has 4 dimensions, but the shape given"),
        ({"data/x": [1, 3, -1, 8]}, "-1 in .* is no length"),
        ({"data/x": [1, 3, "2*", 8]}, "'2\\*' is not a dimension"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: dict[str, list[int | str]], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        imported_text(two_layers(), input_shapes=shapes)


def test_an_input_can_become_a_constant() -> None:
    model, feeds = one_node("ReduceSum", [numbers(2, 3), np.array([1])], opset=13)
    text = imported_text(model, constants={"in1": feeds["in1"]})
    assert "%in1" not in text
    assert "axes = array<i64: 1>" in text


def test_nodes_that_nothing_needs_are_left_out() -> None:
    nodes = [helper.make_node("LSTM", ["x"], ["z"]), helper.make_node("Relu", ["x"], ["y"])]
    text = imported_text(model_of(nodes, {"x": ("float32", [3])}, ["y"]))
    assert "trt.activation relu" in text
    assert "%z" not in text


def test_nodes_of_constants_are_computed() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Mul", ["x", "c"], ["y"])]
    model = model_of(nodes, {"x": ("float32", [2])}, ["y"], {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)})
    assert "dense<2.000000e+00> : tensor<2xf32>" in imported_text(model)


def test_an_output_may_be_an_input_or_a_constant() -> None:
    model = model_of([], {"x": ("float32", [2])}, ["x", "w"], {"w": np.ones(3, np.int64)})
    assert "func.return %x, %w" in imported_text(model)


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        ([("Relu", ["z"], ["y"])], ["y"], r"Relu \(node 'Relu_0'\) reads the tensor 'z', which nothing .* defines"),
        ([("Relu", ["x"], ["y"])], ["z"], "the graph output 'z' is not defined"),
        ([("Relu", ["b"], ["a"]), ("Relu", ["a"], ["b"])], ["a"], r"needs its own result: the graph has a cycle"),
        ([("Relu", ["x"], ["y"]), ("Neg", ["x"], ["y"])], ["y"], r"Neg \(node 'Neg_1'\) defines the tensor 'y'"),
        ([("Relu", [""], ["y"])], ["y"], "expected input 0, but there are 1 inputs and it is empty"),
        ([("Relu", ["x"], ["y"])], ["y", "y"], "two graph outputs have the same name"),
    ],
)
def test_damaged_graphs(nodes: list[tuple[str, list[str], list[str]]], outputs: list[str], message: str) -> None:
    made = [helper.make_node(op_type, read, written) for op_type, read, written in nodes]
    with pytest.raises(InvalidModelError, match=message):
        imported_text(model_of(made, {"x": ("float32", [2])}, outputs))


def test_an_attribute_of_the_wrong_type() -> None:
    model, _ = one_node("LeakyRelu", [numbers(3)], alpha=3)
    with pytest.raises(InvalidModelError, match="expected attribute 'alpha' as float, but it is int"):
        imported_text(model)


def test_a_node_without_a_needed_attribute() -> None:
    model, _ = one_node("Concat", [numbers(3)])
    with pytest.raises(InvalidModelError, match=r"Concat \(node 'node'\): expected the attribute 'axis'"):
        imported_text(model)


def test_inputs_that_are_no_tensors_are_refused() -> None:
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": ("float32", [1])}, ["y"])
    model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", onnx.TensorProto.FLOAT, [1]))
    with pytest.raises(UnsupportedError, match="is a sequence: input_shapes must say the shape of each item"):
        imported_text(model)


def test_absurd_shapes_are_refused() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", [1 << 50])}, ["y"])
    with pytest.raises(InvalidModelError, match="has the length 1125899906842624 in dimension 0; no memory holds that"):
        imported_text(model)
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", [1 << 30, 1 << 30])}, ["y"])
    with pytest.raises(InvalidModelError, match="the result would have the shape"):
        imported_text(model)


def test_formulas_that_explode_are_left_to_the_run() -> None:
    squares = [helper.make_node("Mul", [f"s{k}", f"s{k}"], [f"s{k + 1}"]) for k in range(60)]
    nodes = [helper.make_node("Shape", ["x"], ["s0"]), *squares, helper.make_node("Expand", ["x", "s60"], ["y"])]
    text = imported_text(model_of(nodes, {"x": ("float32", ["n"])}, ["y"]))
    assert "trt.define_size" in text
    assert max(map(len, text.splitlines())) < 1000


def test_shapes_that_explode_are_refused() -> None:
    nodes = [helper.make_node("Einsum", ["x0", "x0"], ["y0"], equation="a,b->ab")]
    for k in range(60):
        nodes.append(helper.make_node("Flatten", [f"y{k}"], [f"f{k}"], axis=0))
        nodes.append(helper.make_node("Einsum", [f"f{k}", f"f{k}"], [f"y{k + 1}"], equation="ca,cb->ab"))
    with pytest.raises(InvalidModelError, match="the result would have the shape"):
        imported_text(model_of(nodes, {"x0": ("float32", ["n"])}, ["y60"]))


def test_functions_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirt.frontend.onnx.graph_reader.MAX_NODE_COUNT", 1000)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    functions: list[onnx.FunctionProto] = []
    for k in range(20):
        inner = ("Relu", "") if k == 19 else (f"F{k + 1}", "mine")
        body = [helper.make_node(inner[0], [a], [b], domain=inner[1]) for a, b in (("x", "t"), ("t", "y"))]
        functions.append(helper.make_function("mine", f"F{k}", ["x"], ["y"], body, imports))
    node = helper.make_node("F0", ["a"], ["b"], domain="mine")
    model = model_of([node], {"a": ("float32", [2])}, ["b"], functions=functions, domains=["mine"])
    with pytest.raises(InvalidModelError, match="the model has more than 1000 nodes"):
        imported_text(model)
