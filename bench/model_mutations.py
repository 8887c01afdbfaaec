"""Changes of ONNX models that leave a readable file with another meaning, mostly none: for `bench/fuzz_models.py`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import onnx
from onnx import AttributeProto, helper

Mutation: TypeAlias = "Callable[[onnx.ModelProto, random.Random], None]"

_INTEGERS = (0, 1, 2, 3, 7, 64, 255, 4096, -1, -2, -5, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63), 8388608)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-38, 3e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = (
    "", "x", "NOTSET", "SAME_UPPER", "VALID", "linear", "nearest", "constant", "reflect", "a\nb", "a\0b", 'q"uo\'te',
    "../up", "/abs", "%s{}", "n" * 3000, "été²", "ij,jk->ik", "...", "int32", "@a", "#", "//", "class",
)  # fmt: skip
_OPERATORS = (
    "Add", "Mul", "MatMul", "Conv", "Reshape", "Transpose", "Concat", "Slice", "Gather", "Pad", "Resize", "Expand",
    "Tile", "Softmax", "ReduceSum", "MaxPool", "Gemm", "If", "Loop", "Scan", "LSTM", "Split", "TopK", "NonZero", "Cast",
    "Where", "Identity", "Shape", "Range", "ConstantOfShape", "QuantizeLinear", "Einsum", "Squeeze", "NoSuchOp", "",
)  # fmt: skip


def mutated(model: onnx.ModelProto, seed: int) -> bytes:
    """The model with one to four changes, as the bytes of a file."""
    dice = random.Random(seed)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 4))):
        mutation = dice.choice(_MUTATIONS)
        try:
            mutation(changed, dice)
        except (IndexError, ValueError, TypeError):
            continue  # there is no such thing in this model, or no field can hold the value
    data = changed.SerializeToString()
    return _bytes_changed(data, dice) if dice.random() < 0.08 else data


def _graphs(model: onnx.ModelProto) -> list[onnx.GraphProto]:
    found = [model.graph]
    for graph in found:
        found += [a.g for node in graph.node for a in node.attribute if a.type == AttributeProto.GRAPH]
    return found


def _graph(model: onnx.ModelProto, dice: random.Random) -> onnx.GraphProto:
    return dice.choice(_graphs(model))


def _node(model: onnx.ModelProto, dice: random.Random) -> onnx.NodeProto:
    nodes = [*_graph(model, dice).node, *(node for function in model.functions for node in function.node)]
    return dice.choice(nodes)


def _names(model: onnx.ModelProto) -> list[str]:
    return [name for graph in _graphs(model) for node in graph.node for name in (*node.input, *node.output)]


def _attribute(model: onnx.ModelProto, dice: random.Random) -> None:
    attribute = dice.choice(_node(model, dice).attribute)
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = dice.choice(_INTEGERS)
    elif kind == AttributeProto.FLOAT:
        attribute.f = dice.choice(_FLOATS)
    elif kind == AttributeProto.STRING:
        attribute.s = dice.choice((*_TEXTS, "\udcff")).encode("utf-8", "surrogateescape")
    elif kind == AttributeProto.INTS:
        _list(attribute.ints, dice, _INTEGERS)
    elif kind == AttributeProto.FLOATS:
        _list(attribute.floats, dice, _FLOATS)
    elif kind == AttributeProto.TENSOR:
        _tensor(attribute.t, dice)
    else:
        attribute.type = dice.randrange(16)  # pyright: ignore[reportAttributeAccessIssue]


def _list(values: Any, dice: random.Random, choices: Sequence[Any]) -> None:
    """Change an element, remove one, add one, or empty the list."""
    how = dice.randrange(4)
    if how == 0:
        values[dice.randrange(len(values))] = dice.choice(choices)
    elif how == 1:
        del values[dice.randrange(len(values))]
    elif how == 2:
        values.append(dice.choice(choices))
    else:
        del values[:]


def _attribute_of_another_kind(model: onnx.ModelProto, dice: random.Random) -> None:
    attribute = dice.choice(_node(model, dice).attribute)
    value = dice.choice((1, 1.5, "text", [1, 2], [0.5], ["a", "b"], []))
    fresh = helper.make_attribute(attribute.name, value, attr_type=AttributeProto.INTS if value == [] else None)
    attribute.CopyFrom(fresh)


def _attributes(model: onnx.ModelProto, dice: random.Random) -> None:
    """Remove, repeat, rename or add an attribute."""
    node = _node(model, dice)
    how = dice.randrange(4)
    if how == 0:
        del node.attribute[dice.randrange(len(node.attribute))]
    elif how == 1:
        node.attribute.append(dice.choice(node.attribute))
    elif how == 2:
        dice.choice(node.attribute).name = dice.choice(("axis", "axes", "to", "body", *_TEXTS))
    else:
        names = ("axis", "axes", "keepdims", "perm", "to", "mode", "group", "k", "allowzero")
        node.attribute.append(
            helper.make_attribute(dice.choice(names), dice.choice((dice.choice(_INTEGERS), "x", [1])))
        )


def _type(model: onnx.ModelProto, dice: random.Random) -> None:
    """Another element type or shape of an input, an output or what lies between."""
    graph = _graph(model, dice)
    of = dice.choice([*graph.input, *graph.output, *graph.value_info]).type
    if not of.HasField("tensor_type") or dice.random() < 0.1:
        of.sequence_type.elem_type.tensor_type.elem_type = 1
        return
    tensor = of.tensor_type
    how = dice.randrange(6)
    if how == 0:
        tensor.elem_type = dice.choice((*range(26), 99, -1))
    elif how == 1:
        dice.choice(tensor.shape.dim).dim_value = dice.choice(_INTEGERS)
    elif how == 2:
        dice.choice(tensor.shape.dim).dim_param = dice.choice((*_TEXTS, "n", "n + 1", "n/0", "2**999", "-n"))
    elif how == 3:
        tensor.shape.dim.add().dim_value = dice.choice(_INTEGERS)
    elif how == 4:
        del tensor.shape.dim[dice.randrange(len(tensor.shape.dim))]
    else:
        tensor.ClearField("shape")


def _initializer(model: onnx.ModelProto, dice: random.Random) -> None:
    graph = _graph(model, dice)
    if dice.random() < 0.3:  # an input becomes a constant
        name = dice.choice(_names(model))
        values = [dice.choice(_INTEGERS) for _ in range(dice.randrange(5))]
        graph.initializer.append(helper.make_tensor(name, onnx.TensorProto.INT64, [len(values)], values))
        return
    if dice.random() < 0.1:
        graph.initializer.append(dice.choice(graph.initializer))
    _tensor(dice.choice(graph.initializer), dice)


def _tensor(tensor: onnx.TensorProto, dice: random.Random) -> None:
    how = dice.randrange(6)
    if how == 0:
        _list(tensor.dims, dice, _INTEGERS)
    elif how == 1:
        tensor.data_type = dice.choice((*range(26), 99))
    elif how == 2:
        tensor.raw_data = _bytes_changed(tensor.raw_data or b"\0" * 8, dice)
    elif how == 3:
        tensor.name = dice.choice(_TEXTS)
    elif how == 4:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", dice.choice(_TEXTS)
    else:
        fields = [tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data]
        dice.choice(fields).append(1)


def _edge(model: onnx.ModelProto, dice: random.Random) -> None:
    """Join, cut, repeat or cross the edges of a node."""
    node = _node(model, dice)
    ends = dice.choice((node.input, node.input, node.output))
    how = dice.randrange(5)
    if how == 0:
        ends[dice.randrange(len(ends))] = dice.choice(_names(model))
    elif how == 1:
        ends[dice.randrange(len(ends))] = dice.choice(("", "missing", *_TEXTS))
    elif how == 2:
        ends.append(dice.choice(_names(model)))
    elif how == 3:
        del ends[dice.randrange(len(ends))]
    else:
        one, two = dice.randrange(len(ends)), dice.randrange(len(ends))
        ends[one], ends[two] = ends[two], ends[one]


def _nodes(model: onnx.ModelProto, dice: random.Random) -> None:
    """Remove, repeat, move a node, or make it one of another operator, domain or name."""
    graph, how = _graph(model, dice), dice.randrange(6)
    if how == 0:
        del graph.node[dice.randrange(len(graph.node))]
    elif how == 1:
        graph.node.append(dice.choice(graph.node))
    elif how == 2:
        order = [*graph.node]
        dice.shuffle(order)
        del graph.node[:]
        graph.node.extend(order)
    elif how == 3:
        _node(model, dice).op_type = dice.choice(_OPERATORS)
    elif how == 4:
        _node(model, dice).domain = dice.choice(("ai.onnx", "com.microsoft", "ai.onnx.ml", *_TEXTS))
    else:
        _node(model, dice).name = dice.choice(_TEXTS)


def _borders(model: onnx.ModelProto, dice: random.Random) -> None:
    """Remove, repeat or rename an input or output of a graph."""
    graph = _graph(model, dice)
    ends = dice.choice((graph.input, graph.output))
    how = dice.randrange(3)
    if how == 0:
        del ends[dice.randrange(len(ends))]
    elif how == 1:
        ends.append(dice.choice([*graph.input, *graph.output]))
    else:
        dice.choice(ends).name = dice.choice((*_names(model), *_TEXTS))


def _versions(model: onnx.ModelProto, dice: random.Random) -> None:
    if dice.random() < 0.3:
        model.ir_version = dice.choice((0, 1, 3, 99, -1))
    elif dice.random() < 0.2:
        del model.opset_import[:]
    else:
        dice.choice(model.opset_import).version = dice.choice((-1, 0, 1, 6, 7, 9, 11, 13, 18, 22, 99, 2**40))


def _bytes_changed(data: bytes, dice: random.Random) -> bytes:
    """A few bytes changed, cut out or put in, anywhere."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.randrange(len(changed) + 1)
        how = dice.randrange(4)
        if how == 0 and changed:
            changed[at % len(changed)] = dice.randrange(256)
        elif how == 1:
            del changed[at : at + dice.choice((1, 4, 64))]
        elif how == 2:
            changed[at:at] = bytes(dice.randrange(256) for _ in range(dice.choice((1, 4, 16))))
        else:
            del changed[at:]
    return bytes(changed)


_MUTATIONS: tuple[Mutation, ...] = (
    _attribute, _attribute, _attribute, _attribute_of_another_kind, _attributes, _attributes, _type, _type, _type,
    _edge, _edge, _edge, _initializer, _initializer, _nodes, _nodes, _borders, _versions,
)  # fmt: skip
