"""Operators of random graphs that are layers: windows, products, normalisation, recurrence, quantisation, control."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from fuzz_graphs import DoesNotFit, Graph, Value
from fuzz_operators import NUMBERS, bounded, emits, has_rank, static
from onnx import TensorProto, helper


@emits("Softmax", "LogSoftmax", "Hardmax")
def rows_to_shares(g: Graph, kind: str) -> None:
    x = g.exact() if kind == "Hardmax" else g.pick("f32", lambda value: value.rank > 0)
    if x.rank == 0:
        raise DoesNotFit("a scalar")
    g.emit(kind, [bounded(g, x, -30, 30)], "f32", x.dims, exact=kind == "Hardmax", axis=g.integer(-x.rank, x.rank - 1))


@emits("LayerNormalization")
def layer_normalization(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank > 1 and isinstance(value.dims[-1], int))
    length = static(x, -1)
    names = [x.name, g.eighths(length), *([g.eighths(length)] if g.chance(0.5) else [])]
    g.emit(kind, names, "f32", x.dims, exact=False, axis=-1, epsilon=0.01)


@emits("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN")
def normalizations(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank in (3, 4) and isinstance(value.dims[1], int))
    channels = static(x, 1)
    if kind == "LRN":
        x = g.pick("f32", has_rank(4))
        g.emit(kind, [x.name], "f32", x.dims, exact=False, size=3)
        return
    names = [x.name, g.eighths(channels), g.eighths(channels)]
    if kind == "BatchNormalization":
        variance = g.weight((np.abs(g.random.standard_normal(channels)) + 0.5).astype(np.float32))
        names += [g.eighths(channels), variance]
    more = {"num_groups": channels} if kind == "GroupNormalization" else {}
    g.emit(kind, names, "f32", x.dims, exact=False, epsilon=0.01, **more)


def image(value: Value) -> bool:
    """A value that windows slide over: channels are known, and the image is large enough."""
    large = all(isinstance(dim, str) or dim >= 3 for dim in value.dims[2:])
    return value.rank in (3, 4) and isinstance(value.dims[1], int) and large


def window(g: Graph, x: Value) -> dict[str, Sequence[int]]:
    """Strides and pads with which a window of 3 or less always fits."""
    rank = x.rank - 2
    return {"strides": [g.integer(1, 2) for _ in range(rank)], "pads": [1] * (2 * rank)}


@emits("Conv")
def convolutions(g: Graph, kind: str) -> None:
    x = g.pick("f32", image)
    channels, rank = static(x, 1), x.rank - 2
    groups = g.one_of([1, 1, channels])
    filters = groups * g.integer(1, 5) if groups > 1 else g.integer(1, 9)
    size = [g.one_of([1, 2, 3]) for _ in range(rank)]
    names = [x.name, g.eighths(filters, channels // groups, *size)]
    if g.chance(0.5):
        names.append(g.eighths(filters))
    dims = (x.dims[0], filters, *(g.new_dim() for _ in range(rank)))
    g.emit(kind, names, "f32", dims, exact=False, group=groups, kernel_shape=size, **window(g, x))


@emits("ConvTranspose")
def transposed_convolutions(g: Graph, kind: str) -> None:
    x = g.pick("f32", image)
    channels, rank = static(x, 1), x.rank - 2
    filters = g.integer(1, 5)
    size = [g.one_of([2, 3]) for _ in range(rank)]
    strides = [g.integer(1, 2) for _ in range(rank)]
    names = [x.name, g.eighths(channels, filters, *size)]
    dims = (x.dims[0], filters, *(g.new_dim() for _ in range(rank)))
    g.emit(kind, names, "f32", dims, exact=False, kernel_shape=size, strides=strides)


@emits("MaxPool", "AveragePool", "LpPool")
def poolings(g: Graph, kind: str) -> None:
    x = g.pick("f32", image)
    rank = x.rank - 2
    size = [g.one_of([2, 3]) for _ in range(rank)]
    dims = (*x.dims[:2], *(g.new_dim() for _ in range(rank)))
    more = {"count_include_pad": g.integer(0, 1)} if kind == "AveragePool" else {}
    g.emit(kind, [x.name], "f32", dims, exact=kind == "MaxPool" and x.exact, kernel_shape=size, **window(g, x), **more)


@emits("GlobalAveragePool", "GlobalMaxPool")
def global_poolings(g: Graph, kind: str) -> None:
    x = g.pick("f32", has_rank(3, 4))
    dims = (*x.dims[:2], *(1 for _ in x.dims[2:]))
    g.emit(kind, [x.name], "f32", dims, exact=kind == "GlobalMaxPool" and x.exact)


@emits("Resize")
def resizes(g: Graph, kind: str) -> None:
    x = g.pick("f32", has_rank(4))
    scales = np.array([1, 1, g.one_of([2, 1.5, 3]), g.one_of([2, 1, 0.5])], np.float32)
    mode = g.one_of(["nearest", "linear"])
    dims = (*x.dims[:2], g.new_dim(), g.new_dim())
    where = "asymmetric" if mode == "nearest" else "half_pixel"
    how = {"mode": mode, "coordinate_transformation_mode": where, "nearest_mode": "floor"}
    g.emit(kind, [x.name, "", g.weight(scales)], "f32", dims, exact=x.exact and mode == "nearest", **how)


@emits("DepthToSpace", "SpaceToDepth")
def blocks(g: Graph, kind: str) -> None:
    to_depth = kind == "SpaceToDepth"

    def fits(value: Value) -> bool:
        parts = value.dims[2:] if to_depth else value.dims[1:2]
        factor = 2 if to_depth else 4
        return value.rank == 4 and all(isinstance(dim, int) and dim % factor == 0 for dim in parts)

    x = g.pick("f32", fits)
    if not isinstance(x.dims[1], int):
        raise DoesNotFit("dynamic channels")
    channels = x.dims[1] * 4 if to_depth else x.dims[1] // 4
    dims = (x.dims[0], channels, g.new_dim(), g.new_dim())
    g.emit(kind, [x.name], "f32", dims, exact=x.exact, blocksize=2)


@emits("MatMul")
def matrix_products(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank > 1 and isinstance(value.dims[-1], int))
    if g.chance(0.3):
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        other = g.node("Transpose", [x.name], perm=order)[0]
        g.emit(kind, [x.name, other], "f32", (*x.dims[:-1], x.dims[-2]), exact=False)
        return
    columns = g.integer(1, 19)
    g.emit(kind, [x.name, g.eighths(static(x, -1), columns)], "f32", (*x.dims[:-1], columns), exact=False)


@emits("Gemm")
def general_products(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank == 2 and isinstance(value.dims[1], int))
    columns, is_transposed = g.integer(1, 19), g.integer(0, 1)
    shape = (columns, static(x, 1)) if is_transposed else (static(x, 1), columns)
    names = [x.name, g.eighths(*shape), *([g.eighths(columns)] if g.chance(0.6) else [])]
    factors = {"alpha": g.one_of([1.0, 0.5]), "beta": g.one_of([1.0, 2.0])}
    g.emit(kind, names, "f32", (x.dims[0], columns), exact=False, transB=is_transposed, **factors)


@emits("Einsum")
def sums_of_products(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank == 3 and isinstance(value.dims[2], int))
    columns = g.integer(1, 9)
    names = [x.name, g.eighths(static(x, 2), columns)]
    g.emit(kind, names, "f32", (x.dims[1], x.dims[0], columns), exact=False, equation="abc,cd->bad")


@emits("GRU", "LSTM", "RNN")
def recurrent_layers(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank == 3 and isinstance(value.dims[2], int))
    hidden, gates = g.integer(1, 9), {"GRU": 3, "LSTM": 4, "RNN": 1}[kind]
    small = bounded(g, x, -2, 2)
    names = [small, g.eighths(1, gates * hidden, static(x, 2)), g.eighths(1, gates * hidden, hidden)]
    g.emit(kind, names, "f32", (x.dims[0], 1, x.dims[1], hidden), exact=False, hidden_size=hidden)


@emits("DynamicQuantizeLinear")
def dynamic_quantization(g: Graph, kind: str) -> None:
    x = g.exact()
    names = g.node(kind, [x.name], 3)
    g.put(names[0], "u8", x.dims, exact=True)
    g.emit("DequantizeLinear", names, "f32", x.dims, exact=False)


@emits("QuantizeLinear", "DequantizeLinear")
def quantization(g: Graph, kind: str) -> None:
    x = g.exact()
    scale, zero = g.scalar("f32", 0.25), g.scalar("i8", g.integer(-5, 5))
    quantized = g.emit("QuantizeLinear", [x.name, scale, zero], "i8", x.dims, exact=True)
    g.emit("DequantizeLinear", [quantized.name, scale, zero], "f32", x.dims, exact=True)


@emits("MatMulInteger")
def integer_products(g: Graph, kind: str) -> None:
    x = g.pick("u8", lambda value: value.rank > 1 and isinstance(value.dims[-1], int))
    columns = g.integer(1, 19)
    names = [x.name, g.small("i8", static(x, -1), columns), g.scalar("u8", 3)]
    g.emit(kind, names, "i32", (*x.dims[:-1], columns), exact=True)


@emits("If")
def branches(g: Graph, kind: str) -> None:
    decider, x = g.exact("f32", lambda value: value.rank > 0), g.pick("f32")
    total = g.node("ReduceSum", [decider.name], keepdims=0)[0]
    condition = g.node("Greater", [total, g.scalar("f32", g.integer(-2, 2))])[0]
    ways = [_branch(g, x, one) for one in (g.one_of(["Neg", "Relu"]), g.one_of(["Tanh", "Sigmoid", "Abs"]))]
    g.used.add(x.name)
    g.emit(kind, [condition], "f32", x.dims, exact=False, then_branch=ways[0], else_branch=ways[1])


def _branch(g: Graph, x: Value, kind: str) -> object:
    name = g.name("branch")
    info = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node(kind, [x.name], [name], name)], name, [], [info])


@emits("Loop")
def loops(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank < 4)
    carried, shown, condition, number = (g.name(stem) for stem in ("carried", "shown", "goes_on", "number"))
    body = helper.make_graph(
        [
            helper.make_node("Mul", [carried, "half" + carried], ["m" + carried], g.name("mul")),
            helper.make_node("Add", ["m" + carried, x.name], ["next" + carried], g.name("add")),
            helper.make_node("Abs", ["next" + carried], [shown], g.name("abs")),
            helper.make_node("Identity", [condition], ["out" + condition], g.name("identity")),
        ],
        g.name("body"),
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, ()),
            helper.make_tensor_value_info(condition, TensorProto.BOOL, ()),
            helper.make_tensor_value_info(carried, TensorProto.FLOAT, x.dims if _known(x) else [None] * x.rank),
        ],
        [
            helper.make_tensor_value_info("out" + condition, TensorProto.BOOL, ()),
            helper.make_tensor_value_info("next" + carried, TensorProto.FLOAT, None),
            helper.make_tensor_value_info(shown, TensorProto.FLOAT, None),
        ],
        [helper.make_tensor("half" + carried, TensorProto.FLOAT, (), [0.5])],
    )
    iterations = g.integer(1, 5)
    names = g.node(kind, [g.scalar("i64", iterations), g.scalar("bool", 1), x.name], 2, body=body)
    g.used.add(x.name)
    g.put(names[0], "f32", x.dims, exact=False)
    g.put(names[1], "f32", (iterations, *x.dims), exact=False)


def _known(value: Value) -> bool:
    return all(isinstance(dim, int) for dim in value.dims)


@emits("Range")
def ranges(g: Graph, kind: str) -> None:
    x = g.pick(("f32", "i64", "i32", "bool"), lambda value: value.rank > 0)
    count = g.node("Gather", [g.node("Shape", [x.name])[0], g.scalar("i64", 0)])[0]
    zero, one = (g.scalar("i64", number) for number in (0, 1))
    g.emit(kind, [zero, count, one], "i64", (x.dims[0],), exact=True)


@emits("ConstantOfShape")
def constants_of_shapes(g: Graph, kind: str) -> None:
    x = g.pick((*NUMBERS, "bool"), lambda value: 0 < value.rank < 4)
    number = helper.make_tensor("value", TensorProto.FLOAT, (1,), [g.integer(-8, 8) / 8])
    g.emit(kind, [g.node("Shape", [x.name])[0]], "f32", x.dims, exact=True, value=number)
