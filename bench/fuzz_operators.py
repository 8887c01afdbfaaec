"""How each ONNX operator gets into a random graph: which values it takes, with which attributes, and what comes out.

An emitter draws the inputs of its operator from the graph's values and puts the outputs back; it raises `DoesNotFit`
where the graph has no fitting values. `OPERATORS` has one for each operator name,
once `fuzz_moves` and `fuzz_layers` are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fuzz_graphs import DoesNotFit, Graph, Value
from onnx import TensorProto

Emitter: TypeAlias = "Callable[[Graph, str], None]"
OPERATORS: dict[str, Emitter] = {}
INTEGERS = ("i32", "i64")
NUMBERS = ("f32", "i32", "i64")
_ONNX = {"f32": TensorProto.FLOAT, "i32": TensorProto.INT32, "i64": TensorProto.INT64, "bool": TensorProto.BOOL}


def emits(*kinds: str) -> Callable[[Emitter], Emitter]:
    """The decorated function writes these operators."""

    def register(emitter: Emitter) -> Emitter:
        OPERATORS.update(dict.fromkeys(kinds, emitter))
        return emitter

    return register


def has_rank(*ranks: int) -> Callable[[Value], bool]:
    return lambda value: value.rank in ranks


def static(value: Value, axis: int) -> int:
    """A length that is known when the graph is written."""
    dim = value.dims[axis]
    if isinstance(dim, str):
        raise DoesNotFit("a dynamic length")
    return dim


def bounded(g: Graph, value: Value, low: float, high: float) -> str:
    """The value's numbers, limited so that exponentials and powers of them stay small."""
    return g.node("Clip", [value.name, g.scalar("f32", low), g.scalar("f32", high)])[0]


@emits("Relu", "LeakyRelu", "HardSigmoid", "HardSwish", "ThresholdedRelu", "Abs", "Neg", "Identity", "PRelu")
def simple_activation(g: Graph, kind: str) -> None:
    x = g.pick("f32")
    more = [g.eighths()] if kind == "PRelu" else []
    exact = x.exact and kind in ("Relu", "Abs", "Neg", "Identity", "ThresholdedRelu")
    g.emit(kind, [x.name, *more], "f32", x.dims, exact=exact)


@emits("Sigmoid", "Tanh", "Softplus", "Softsign", "Elu", "Selu", "Celu", "Mish", "Gelu", "Erf", "Sin", "Cos", "Atan")
def smooth_activation(g: Graph, kind: str) -> None:
    x = g.pick("f32")
    g.emit(kind, [bounded(g, x, -50, 50)], "f32", x.dims, exact=False)


@emits("Exp", "Sinh", "Cosh", "Asinh", "Tan", "Asin", "Acos", "Atanh")
def steep_function(g: Graph, kind: str) -> None:
    x = g.pick("f32")
    limit = 0.9 if kind in ("Asin", "Acos", "Atanh") else 1.3 if kind == "Tan" else 4
    g.emit(kind, [bounded(g, x, -limit, limit)], "f32", x.dims, exact=False)


@emits("Log", "Sqrt", "Reciprocal", "Acosh")
def function_of_positive(g: Graph, kind: str) -> None:
    x = g.pick("f32")
    g.emit(kind, [bounded(g, x, 1.25, 100)], "f32", x.dims, exact=False)


@emits("Floor", "Ceil", "Round", "Sign")
def rounding(g: Graph, kind: str) -> None:
    x = g.exact()
    g.emit(kind, [x.name], "f32", x.dims, exact=True)


@emits("IsNaN", "IsInf")
def test_of_floats(g: Graph, kind: str) -> None:
    x = g.pick("f32")
    g.emit(kind, [x.name], "bool", x.dims, exact=True)


@emits("Add", "Sub", "Max", "Min", "Sum", "Mean")
def sums(g: Graph, kind: str) -> None:
    x = g.pick("f32" if kind in ("Sum", "Mean") else NUMBERS)
    names = [x.name, g.like(x).name] if g.chance(0.6) else [x.name, g.small(x.type)]
    others = [value for value in g.values if value.name in names]
    exact = kind != "Mean" and all(value.exact for value in others)
    if g.chance(0.5):
        names.reverse()
    g.emit(kind, names, x.type, x.dims, exact=exact)


@emits("Mul")
def products(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS)
    y = g.like(x)
    g.emit(kind, [x.name, y.name], x.type, x.dims, exact=x.type != "f32")


@emits("Div")
def quotients(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS)
    if x.type == "f32":
        divisor = bounded(g, g.like(x), 0.5, 8)
    else:
        divisor = g.node("Max", [g.like(x).name, g.scalar(x.type, 2)])[0]
    g.emit(kind, [x.name, divisor], x.type, x.dims, exact=x.type != "f32")


@emits("Mod")
def remainders(g: Graph, kind: str) -> None:
    x = g.exact(NUMBERS)
    divisor = g.node("Max", [g.like(x).name, g.small(x.type)])[0]
    divisor = g.node("Max", [divisor, g.scalar(x.type, 1)])[0]
    g.emit(kind, [x.name, divisor], x.type, x.dims, exact=x.type != "f32", fmod=int(x.type == "f32"))


@emits("Pow")
def powers(g: Graph, kind: str) -> None:
    x = g.pick("f32")
    exponent = g.one_of([0.5, 2.0, 3.0, -1.0, 1.7])
    g.emit(kind, [bounded(g, x, 0.25, 4), g.scalar("f32", exponent)], "f32", x.dims, exact=False)


@emits("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def comparisons(g: Graph, kind: str) -> None:
    x = g.exact(NUMBERS)
    other = g.like(x)
    name = other.name if other.exact else g.small(x.type)
    g.emit(kind, [x.name, name], "bool", x.dims, exact=True)


@emits("And", "Or", "Xor", "Not")
def logic(g: Graph, kind: str) -> None:
    x = g.pick("bool")
    names = [x.name] if kind == "Not" else [x.name, g.like(x).name]
    g.emit(kind, names, "bool", x.dims, exact=True)


@emits("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
def bits(g: Graph, kind: str) -> None:
    x = g.pick((*INTEGERS, "u8"))
    names = [x.name] if kind == "BitwiseNot" else [x.name, g.like(x).name]
    g.emit(kind, names, x.type, x.dims, exact=True)


@emits("BitShift")
def shifts(g: Graph, kind: str) -> None:
    x = g.pick("u8")
    amount = g.scalar("u8", g.integer(0, 7))
    g.emit(kind, [x.name, amount], "u8", x.dims, exact=True, direction=g.one_of(["LEFT", "RIGHT"]))


@emits("Clip")
def limits(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS)
    low, high = sorted((g.integer(-9, 9), g.integer(-9, 9)))
    names = [x.name, g.scalar(x.type, low), g.scalar(x.type, high)]
    if g.chance(0.3):
        names[g.integer(1, 2)] = ""
    g.emit(kind, names, x.type, x.dims, exact=x.exact)


@emits("Cast")
def casts(g: Graph, kind: str) -> None:
    x = g.exact(("f32", "i32", "i64", "u8", "bool"))
    to = g.one_of(["f32", "i32", "i64", "bool"])
    source = bounded(g, x, -1e6, 1e6) if x.type == "f32" else x.name
    g.emit(kind, [source], to, x.dims, exact=True, to=_ONNX[to])


@emits("Where")
def selections(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS)
    y = g.like(x)
    conditions = [
        value.name
        for value in g.values
        if value.type == "bool"
        and value.rank <= x.rank
        and all(a in (b, 1) for a, b in zip(reversed(value.dims), reversed(x.dims), strict=False))
    ]
    if not conditions:
        other = g.exact(NUMBERS, lambda value: value.dims == x.dims)
        conditions = g.node("Greater", [other.name, g.small(other.type)])
    g.emit(kind, [g.one_of(conditions), x.name, y.name], x.type, x.dims, exact=x.exact and y.exact)
