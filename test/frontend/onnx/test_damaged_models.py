"""Whatever the bytes of a model are: it is read, or refused with an error of ours; never another exception."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_models import model_of, numbers, one_node, small_integers

from mlirt.dialects.context import RtContext
from mlirt.errors import MlirtError
from mlirt.frontend.onnx.importer import import_model

EXTREMES = [0, 1, -1, 2, 3, 7, 64, 255, 1 << 31, (1 << 63) - 1, -(1 << 63)]


@cache
def models() -> list[bytes]:
    image = numbers(1, 3, 6, 6)
    statistics = [numbers(3, seed=k) for k in range(4)]
    made = [
        one_node("Conv", [image, numbers(4, 3, 3, 3)], constants=[1], pads=[1, 1, 1, 1], strides=[2, 2], group=1),
        one_node("ConvTranspose", [image, numbers(3, 4, 2, 2)], constants=[1], strides=[2, 2]),
        one_node("AveragePool", [image], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        one_node("BatchNormalization", [image, *statistics], constants=[1, 2, 3, 4]),
        one_node("Reshape", [image, np.array([0, -1])], constants=[1]),
        one_node("Slice", [image, *(np.array([k]) for k in (1, 5, 2, 2))], constants=[1, 2, 3, 4]),
        one_node("Resize", [image, None, np.array([1, 1, 2, 2], np.float32)], constants=[2], mode="linear"),
        one_node("QLinearMatMul", [small_integers(2, 2, dtype="uint8"), *quantised()], 10, range(1, 8)),
        one_node("TopK", [image, np.array([2])], constants=[1], outputs=2),
        one_node("Split", [image], opset=18, outputs=3, axis=1, num_outputs=3),
        one_node("LayerNormalization", [image, numbers(6)], constants=[1]),
        one_node("Pad", [image, np.arange(8) % 2], constants=[1]),
        one_node("Einsum", [numbers(2, 3), numbers(3, 4)], equation="ij,jk->ik"),
    ]
    return [model.SerializeToString() for model, _ in made] + [shape_arithmetic(), function()]


def quantised() -> list[np.ndarray]:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    scale, zero = np.array(0.1, np.float32), np.array(3, np.uint8)
    return [scale, zero, small_integers(2, 2, dtype="uint8"), scale, zero, scale, zero]


def shape_arithmetic() -> bytes:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "k"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = {"k": np.array([0]), "rest": np.array([-1, 3])}
    return model_of(nodes, {"x": ("float32", ["n", 3, "h"])}, ["y"], constants).SerializeToString()


def function() -> bytes:
    body = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Add", ["b", "b"], ["c"])]
    made = helper.make_function("mine", "Twice", ["a"], ["c"], body, [helper.make_opsetid("", 17)])
    node = helper.make_node("Twice", ["x"], ["y"], domain="mine")
    return model_of([node], {"x": ("float32", ["n"])}, ["y"], functions=[made], domains=["mine"]).SerializeToString()


def refused_or_read(model: bytes | onnx.ModelProto) -> None:
    with suppress(MlirtError):
        import_model(model, RtContext())


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_changed_bytes(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(models())))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["set", "cut", "insert", "end"]))
        if kind == "set":
            content[place] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del content[place : place + data.draw(st.integers(1, 5))]
        elif kind == "insert":
            content[place:place] = data.draw(st.binary(min_size=1, max_size=4))
        else:
            del content[place:]
        if not content:
            break
    refused_or_read(bytes(content))


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.integers(0, 1 << 32))
def test_changed_fields(seed: int) -> None:
    choose = random.Random(seed)
    model = onnx.ModelProto.FromString(choose.choice(models()))
    for _ in range(choose.randint(1, 3)):
        change_one(model, choose)
    refused_or_read(model)


def change_one(model: onnx.ModelProto, choose: random.Random) -> None:
    """Something that still parses, and mostly makes no sense."""
    node, value = choose.choice(model.graph.node), choose.choice(model.graph.input)
    dims, kind = value.type.tensor_type.shape.dim, choose.randrange(9)
    attribute = choose.choice(node.attribute) if node.attribute else onnx.AttributeProto()
    if kind == 0 and attribute.ints:
        attribute.ints[0] = choose.choice(EXTREMES)
    elif kind == 1:
        attribute.i = choose.choice(EXTREMES)
    elif kind == 2 and node.input:
        del node.input[choose.randrange(len(node.input))]
    elif kind == 3 and dims:
        choose.choice(dims).dim_value = choose.choice(EXTREMES)
    elif kind == 4:
        dims.add().dim_param = choose.choice(["n", "?", "1x", "a b", "max", ""])
    elif kind == 5:
        value.type.tensor_type.elem_type = choose.randrange(26)  # pyright: ignore[reportAttributeAccessIssue]
    elif kind == 6:
        model.opset_import[0].version = choose.choice([0, 1, 6, 9, 11, 13, 18, 99])
    elif kind == 7:
        node.op_type = choose.choice(["Gemm", "Tile", "Expand", "GatherND", "LSTM", "Squeeze", "Nothing"])
    elif model.graph.initializer:
        stored = choose.choice(model.graph.initializer)
        stored.dims[:] = [choose.choice(EXTREMES)]
