"""Lengths that only a run finds to be 1 broadcast as in onnxruntime; others that differ are refused by their layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from broadcast_models import build, feeds_of
from onnx import helper
from onnx_models import Array, model_of, numbers

node = helper.make_node

# What one of two operands may be, beside the other: equal, one of them shorter in one axis or both, nothing at all, one
# vector wide and more.
PAIRS = (
    ((5, 4), (5, 4)),
    ((1, 4), (5, 4)),
    ((5, 4), (1, 4)),
    ((5, 1), (1, 4)),
    ((1, 1), (3, 40)),
    ((3, 40), (3, 1)),
    ((0, 4), (1, 4)),
    ((1, 1), (1, 1)),
)
WRONG = (((5, 4), (3, 4)), ((0, 4), (3, 4)), ((5, 2), (5, 4)))
TRIPLES = (((5, 4), (1, 4), (5, 1)), ((1, 4), (5, 1), (1, 1)), ((1, 1), (1, 1), (3, 2)), ((5, 4), (1, 1), (5, 4)))

BINARY: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: ("float32", {}) for name in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean")},
    **{name: ("float32", {}) for name in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")},
    **{name: ("bool", {}) for name in ("And", "Or", "Xor")},
    **{name: ("int32", {}) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mod")},
    "BitShift": ("uint32", {"direction": "LEFT"}),
}


def elementwise(op_type: str, types: list[str], **attributes: Any) -> onnx.ModelProto:
    """One layer whose inputs have other names for all their lengths."""
    inputs = {f"in{k}": (kind, [f"a{k}", f"b{k}"]) for k, kind in enumerate(types)}
    return model_of([node(op_type, list(inputs), ["y"], name="layer", **attributes)], inputs, ["y"], opset=18)


@pytest.mark.parametrize("op_type", BINARY)
def test_two_operands(op_type: str) -> None:
    kind, attributes = BINARY[op_type]
    built = build(elementwise(op_type, [kind, kind], **attributes))
    for shapes in PAIRS:
        built.check(feeds_of(built.model, shapes))
    for shapes in WRONG:
        built.refuse(feeds_of(built.model, shapes), "layer")


@pytest.mark.parametrize(
    ("op_type", "types"),
    [("Where", ["bool", "float32", "float32"]), ("Max", ["float32"] * 3), ("Sum", ["float32"] * 3)],
)
def test_three_operands(op_type: str, types: list[str]) -> None:
    """Any of them may be the one that is as long as the result, the one in the middle too."""
    built = build(elementwise(op_type, types))
    for shapes in TRIPLES:
        built.check(feeds_of(built.model, shapes))
    for shapes in (((5, 4), (1, 4), (3, 4)), ((1, 4), (1, 3), (1, 1)), ((2, 1), (1, 1), (3, 1))):
        built.refuse(feeds_of(built.model, shapes), "layer")


def test_slopes() -> None:
    """They broadcast to the input, and not the other way round."""
    built = build(elementwise("PRelu", ["float32", "float32"]))
    for shapes in (((5, 4), (5, 4)), ((5, 4), (1, 4)), ((5, 40), (5, 1)), ((5, 4), (1, 1))):
        feeds = feeds_of(built.model, shapes)
        built.check({"in0": feeds["in0"] - 1, "in1": feeds["in1"]})
    for shapes in (((5, 4), (3, 4)), ((1, 4), (5, 4))):
        built.refuse(feeds_of(built.model, shapes), "layer")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_length_beside_a_number(is_first: bool) -> None:
    inputs = {"x": ("float32", [5, 4]), "z": ("float32", ["m", 4])}
    operands = ["z", "x"] if is_first else ["x", "z"]
    built = build(model_of([node("Sub", operands, ["y"], name="layer")], inputs, ["y"]))
    for length in (5, 1):
        built.check(feeds_of(built.model, [(5, 4), (length, 4)]))
    built.refuse(feeds_of(built.model, [(5, 4), (3, 4)]), "layer")


def test_a_length_beside_a_weight() -> None:
    built = build(model_of([node("Mul", ["x", "w"], ["y"])], {"x": ("float32", ["n", "m"])}, ["y"], {"w": numbers(7)}))
    for shape in ((5, 7), (5, 1), (1, 1)):
        built.check(feeds_of(built.model, [shape]))
    built.refuse(feeds_of(built.model, [(5, 4)]), "Mul")


@pytest.mark.parametrize("operands", [["x", "t"], ["t", "x"]])
def test_a_slice_beside_what_it_is_of(operands: list[str]) -> None:
    weights = {"s": np.array([0]), "e": np.array([1]), "a": np.array([0]), "st": np.array([2])}
    nodes = [node("Slice", ["x", "s", "e", "a", "st"], ["t"]), node("Sub", operands, ["y"])]
    built = build(model_of(nodes, {"x": ("float32", ["n", 4])}, ["y"], weights))
    for length in (5, 1, 2):
        built.check(feeds_of(built.model, [(length, 4)]))


BATCHES = (((2, 3), (2, 3)), ((1, 3), (2, 1)), ((2, 1), (1, 3)), ((1, 1), (2, 3)))


@pytest.mark.parametrize("sides", [(3, 4, 5), (1, 64, 70)])
def test_batches_of_products(sides: tuple[int, int, int]) -> None:
    rows, depth, columns = sides
    inputs = {"a": ("float32", ["p", "q", rows, depth]), "b": ("float32", ["r", "s", depth, columns])}
    built = build(model_of([node("MatMul", ["a", "b"], ["y"], name="layer")], inputs, ["y"]))
    for left, right in BATCHES:
        built.check(feeds_of(built.model, [(*left, rows, depth), (*right, depth, columns)]))
    built.refuse(feeds_of(built.model, [(2, 3, rows, depth), (3, 3, depth, columns)]), "layer")


def test_axes_under_an_ellipsis() -> None:
    for equation in ("...ij,...jk->...ik", "...ij,...jk->...i"):
        inputs = {"a": ("float32", ["p", "q", 3, 4]), "b": ("float32", ["r", "s", 4, 5])}
        made = node("Einsum", ["a", "b"], ["y"], name="layer", equation=equation)
        built = build(model_of([made], inputs, ["y"]))
        for left, right in BATCHES:
            built.check(feeds_of(built.model, [(*left, 3, 4), (*right, 4, 5)]))
        built.refuse(feeds_of(built.model, [(2, 3, 3, 4), (3, 3, 4, 5)]), "layer")


def test_the_addend_of_a_product() -> None:
    """It broadcasts to the product, and not the other way round."""
    inputs = {"a": ("float32", ["m", 16]), "b": ("float32", [16, "n"]), "c": ("float32", ["p", "q"])}
    built = build(model_of([node("Gemm", ["a", "b", "c"], ["y"], name="layer", beta=2.0)], inputs, ["y"]))
    for shape in ((5, 32), (1, 32), (5, 1), (1, 1)):
        built.check(feeds_of(built.model, [(5, 16), (16, 32), shape]))
    for rows, shape in ((5, (3, 32)), (5, (5, 31)), (1, (3, 32))):
        built.refuse(feeds_of(built.model, [(rows, 16), (16, 32), shape]), "layer")


def test_expansion_to_a_shape() -> None:
    nodes = [node("Shape", ["b"], ["s"]), node("Expand", ["a", "s"], ["y"], name="layer")]
    built = build(model_of(nodes, {"a": ("float32", ["p", "q"]), "b": ("float32", ["r", "s"])}, ["y"]))
    for shapes in (((2, 3), (2, 3)), ((1, 3), (2, 1)), ((2, 1), (1, 3)), ((2, 3), (1, 1)), ((1, 1), (0, 5))):
        built.check(feeds_of(built.model, shapes))
    built.refuse(feeds_of(built.model, ((2, 3), (3, 3))), "layer")


def test_expansion_to_lengths_that_only_the_data_tells() -> None:
    inputs = {"a": ("float32", ["p", "q"]), "s": ("int64", [2])}
    built = build(model_of([node("Expand", ["a", "s"], ["y"], name="layer")], inputs, ["y"]))
    for shape, wanted in (((2, 3), (2, 3)), ((1, 3), (4, 1)), ((1, 1), (2, 2)), ((2, 3), (1, 1)), ((1, 3), (0, 3))):
        built.check({"a": numbers(*shape), "s": np.array(wanted)})
    for shape, wanted in (((2, 3), (3, 3)), ((5, 3), (3, 3)), ((3, 3), (0, 3))):
        built.refuse({"a": numbers(*shape), "s": np.array(wanted)}, "layer")


def test_lengths_that_only_the_data_tells() -> None:
    nodes = [node("NonZero", ["a"], ["p"]), node("NonZero", ["b"], ["q"]), node("Add", ["p", "q"], ["y"], name="layer")]
    built = build(model_of(nodes, {"a": ("float32", [None]), "b": ("float32", [None])}, ["y"]))
    for lengths in ((5, 5), (1, 5), (5, 1), (1, 1)):
        built.check(feeds_of(built.model, [(length,) for length in lengths]))
    built.refuse(feeds_of(built.model, [(5,), (3,)]), "layer")


IMAGE = ("float32", ["m", 8, "i", "j"])
FUSED: dict[str, tuple[list[onnx.NodeProto], dict[str, Array]]] = {
    "chain": (
        [
            node("Exp", ["x"], ["e"]),
            node("Add", ["e", "z"], ["s"], name="layer"),
            node("Tanh", ["s"], ["t"]),
            node("Add", ["t", "e"], ["y"]),
        ],
        {},
    ),
    "softmax": (
        [node("Add", ["x", "z"], ["s"], name="layer"), node("Softmax", ["s"], ["y"])],
        {},
    ),
    "sum": (
        [node("Mul", ["x", "z"], ["s"], name="layer"), node("ReduceSum", ["s", "axes"], ["y"])],
        {"axes": np.array([1])},
    ),
    "sum of columns": (
        [node("Mul", ["x", "z"], ["s"], name="layer"), node("ReduceMax", ["s"], ["y"], axes=[0])],
        {},
    ),
    "transposes": (
        [
            node("Transpose", ["x"], ["a"]),
            node("Transpose", ["z"], ["b"]),
            node("Mul", ["a", "b"], ["s"], name="layer"),
            node("Flatten", ["s"], ["y"], axis=2),
        ],
        {},
    ),
    "join": (
        [node("Add", ["x", "z"], ["s"], name="layer"), node("Concat", ["s", "s"], ["y"], axis=1)],
        {},
    ),
    "maximum": (
        [
            node("Sub", ["x", "z"], ["s"], name="layer"),
            node("Unsqueeze", ["s", "axes"], ["t"]),
            node("MaxPool", ["t"], ["y"], kernel_shape=[2], pads=[1, 1]),
        ],
        {"axes": np.array([0])},
    ),
}


@pytest.mark.parametrize("name", FUSED)
def test_what_is_computed_together(name: str) -> None:
    nodes, weights = FUSED[name]
    inputs = {"x": ("float32", ["n", "k"]), "z": ("float32", ["m", "l"])}
    built = build(model_of(nodes, inputs, ["y"], weights))
    for shapes in (((2, 7), (2, 7)), ((2, 7), (1, 7)), ((2, 1), (2, 7)), ((1, 33), (5, 1)), ((1, 1), (5, 33))):
        built.check(feeds_of(built.model, shapes))
    built.refuse(feeds_of(built.model, ((2, 7), (2, 6))), "layer")


def test_what_a_convolution_ends_with() -> None:
    """Its own result may be the one that is repeated."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Add", ["c", "z"], ["s"], name="layer"),
        node("Relu", ["s"], ["y"]),
    ]
    built = build(
        model_of(nodes, {"x": ("float32", ["n", 4, "h", "w"]), "z": IMAGE}, ["y"], {"w": numbers(8, 4, 3, 3)})
    )
    small = (1, 4, 1, 1), (2, 8, 5, 6)
    for image, other in (
        ((2, 4, 6, 7), (2, 8, 6, 7)),
        ((1, 4, 6, 7), (2, 8, 6, 7)),
        ((2, 4, 6, 7), (1, 8, 1, 7)),
        ((2, 4, 6, 1), (2, 8, 6, 7)),
        small,
    ):
        built.check(feeds_of(built.model, (image, other)))
    built.refuse(feeds_of(built.model, ((2, 4, 6, 7), (2, 8, 5, 7))), "layer")


def test_what_a_product_with_weights_ends_with() -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["c"]),
        node("Add", ["c", "z"], ["s"], name="layer"),
        node("Relu", ["s"], ["y"]),
    ]
    inputs = {"x": ("float32", ["n", "k", 16]), "z": ("float32", ["m", "l", 32])}
    built = build(model_of(nodes, inputs, ["y"], {"w": numbers(16, 32)}))
    for rows, other in (((2, 3), (2, 3)), ((1, 3), (2, 3)), ((2, 3), (2, 1)), ((2, 1), (1, 3))):
        built.check(feeds_of(built.model, ((*rows, 16), (*other, 32))))
    built.refuse(feeds_of(built.model, ((2, 3, 16), (2, 2, 32))), "layer")


def test_normalization_of_a_sum() -> None:
    nodes = [
        node("Add", ["x", "z"], ["s"], name="layer"),
        node("LayerNormalization", ["s", "scale", "shift"], ["y"]),
    ]
    inputs = {"x": ("float32", ["n", "k"]), "z": ("float32", ["m", "l"])}
    built = build(model_of(nodes, inputs, ["y"], {"scale": numbers(16), "shift": numbers(16, seed=1)}))
    for shapes in (((2, 16), (2, 16)), ((2, 16), (1, 16)), ((2, 16), (2, 1)), ((1, 1), (2, 16))):
        built.check(feeds_of(built.model, shapes))
    built.refuse(feeds_of(built.model, ((2, 16), (3, 16))), "layer")


def test_the_mask_of_an_attention() -> None:
    """Its columns are those of the scores or 1, as the scores are multiplied with as many values."""
    nodes = [
        node("MatMul", ["q", "k"], ["p"]),
        node("Add", ["p", "mask"], ["a"], name="layer"),
        node("Softmax", ["a"], ["s"]),
        node("MatMul", ["s", "v"], ["y"]),
    ]
    inputs = {
        "q": ("float32", ["b", 2, "s", 16]),
        "k": ("float32", ["b", 2, 16, "s"]),
        "v": ("float32", ["b", 2, "s", 16]),
        "mask": ("float32", ["bm", 1, "rows", "columns"]),
    }
    built = build(model_of(nodes, inputs, ["y"]))
    whole = ((3, 2, 6, 16), (3, 2, 16, 6), (3, 2, 6, 16))
    for mask in ((3, 1, 6, 6), (1, 1, 6, 6), (3, 1, 1, 6), (1, 1, 1, 1)):
        built.check(feeds_of(built.model, (*whole, mask)))
    one = ((1, 2, 6, 16), (1, 2, 16, 6), (1, 2, 6, 16))
    built.check(feeds_of(built.model, (*one, (4, 1, 1, 6))))
    for mask in ((3, 1, 6, 5), (2, 1, 6, 6), (3, 1, 5, 6)):
        built.refuse(feeds_of(built.model, (*whole, mask)), "layer")


def test_what_a_branch_and_a_loop_add() -> None:
    body = helper.make_graph(
        [node("Add", ["s", "z"], ["t"], name="layer"), node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, ["n"]),
        ],
        [
            helper.make_tensor_value_info("d", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, ["n"]),
        ],
    )
    nodes = [node("Loop", ["most", "", "x"], ["y"], body=body)]
    inputs = {"x": ("float32", ["n"]), "z": ("float32", ["m"])}
    built = build(model_of(nodes, inputs, ["y"], {"most": np.array(3)}))
    for lengths in ((5, 5), (5, 1), (1, 1)):
        built.check(feeds_of(built.model, [(length,) for length in lengths]))
    built.refuse(feeds_of(built.model, [(5,), (3,)]), "layer")
