"""Arithmetic of a function of numbers as layers: what Python does with two numbers, done with two tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mlirt.dialects.tensor_types import byte_width, element_type, is_bool, is_float, numpy_dtype
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value

if TYPE_CHECKING:
    from xdsl.ir import Attribute

Number: TypeAlias = "bool | int | float"
Operand: TypeAlias = "Value | bool | int | float"
Call: TypeAlias = "Callable[[Network, Sequence[Operand]], Operand]"

MAX_UNROLLED_POWER = 4


class UnreadableError(Exception):
    """The function does something that layers do not."""


def is_number(value: object) -> bool:
    """Whether this is a number of Python's or NumPy's."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


def as_value(net: Network, operand: Operand, element: Attribute) -> Value:
    """An operand as a tensor of an element type."""
    if isinstance(operand, Value):
        return layers.cast(net, operand, element)
    return net.constant(np.asarray(operand).astype(numpy_dtype(element)))


def common(net: Network, operands: Sequence[Operand]) -> list[Value]:
    """The operands in one type: floating-point ones win, then wider ones; numbers take the type of the tensors."""
    tensors = [one.element for one in operands if isinstance(one, Value)]
    widest = max(tensors, key=lambda one: (is_float(one), not is_bool(one), byte_width(one)))
    reals = any(isinstance(one, float | np.floating) for one in operands)
    wholes = any(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in operands)
    if reals and not is_float(widest):
        widest = element_type("float32")
    elif wholes and is_bool(widest):
        widest = element_type("int32")
    return [as_value(net, one, widest) for one in operands]


def binary(net: Network, kind: str, left: Operand, right: Operand) -> Value:
    """An elementwise layer on operands of any kind; arithmetic of truth values is that of whole numbers."""
    a, b = common(net, [left, right])
    if is_bool(a.element) and kind not in ("and", "or", "xor", "equal"):
        a, b = (layers.cast(net, one, "int32") for one in (a, b))
    return layers.binary(net, kind, a, b)


def quotient(net: Network, left: Operand, right: Operand) -> Value:
    """Python's `/`, which gives a floating-point number."""
    return layers.binary(net, "div", *_floats(net, [left, right]))


def power(net: Network, base: Operand, exponent: Operand) -> Value:
    """`**`; small whole powers are products."""
    if isinstance(base, Value) and isinstance(exponent, int) and 1 <= exponent <= MAX_UNROLLED_POWER:
        found = base
        for _ in range(exponent - 1):
            found = binary(net, "prod", found, base)
        return found
    is_whole = isinstance(exponent, int) and exponent >= 0
    return (
        binary(net, "pow", base, exponent) if is_whole else layers.binary(net, "pow", *_floats(net, [base, exponent]))
    )


def truth(net: Network, operand: Operand) -> Value:
    """The operand as a condition: whether it is not 0."""
    value = as_value(net, operand, element_type("bool")) if not isinstance(operand, Value) else operand
    return value if is_bool(value.element) else negated(net, binary(net, "equal", value, 0))


def negated(net: Network, value: Value) -> Value:
    """The opposite of a condition."""
    return layers.unary(net, "not", value)


def select(net: Network, condition: Value, yes: Operand, no: Operand) -> Operand:
    """One of two operands, element by element."""
    if isinstance(yes, Value) or isinstance(no, Value):
        a, b = common(net, [yes, no])
    else:
        kind = "float32" if isinstance(yes, float) or isinstance(no, float) else "int32"
        is_truth = isinstance(yes, bool) and isinstance(no, bool)
        a, b = (as_value(net, one, element_type("bool" if is_truth else kind)) for one in (yes, no))
    if is_bool(a.element):  # there is no layer that chooses between truth values
        chosen = layers.select(net, condition, layers.cast(net, a, "int32"), layers.cast(net, b, "int32"))
        return negated(net, binary(net, "equal", chosen, 0))
    return layers.select(net, condition, a, b)


def _floats(net: Network, operands: Sequence[Operand]) -> list[Value]:
    return [layers.in_float(net, one) for one in common(net, operands)]


def _unary(kind: str) -> Call:
    return lambda net, given: layers.unary(net, kind, _real(net, given))


def _real(net: Network, given: Sequence[Operand]) -> Value:
    (x,) = given
    return layers.in_float(net, x) if isinstance(x, Value) else as_value(net, x, element_type("float32"))


def _extremum(kind: str) -> Call:
    def chosen(net: Network, given: Sequence[Operand]) -> Operand:
        found = given[0]
        for one in given[1:]:
            found = binary(net, kind, found, one)
        return found

    return chosen


def _absolute(net: Network, given: Sequence[Operand]) -> Value:
    (x,) = given
    assert isinstance(x, Value)
    return layers.unary(net, "abs", layers.cast(net, x, "int32") if is_bool(x.element) else x)


def _tangent(net: Network, given: Sequence[Operand]) -> Value:
    return layers.activation(net, "tanh", _real(net, given))


def _log1p(net: Network, given: Sequence[Operand]) -> Operand:
    """log(1 + x) as Kahan has it, which loses no digits near 0."""
    x = _real(net, given)
    u = binary(net, "sum", x, 1.0)
    usual = binary(net, "prod", layers.unary(net, "log", u), quotient(net, x, binary(net, "sub", u, 1.0)))
    usual = select(net, binary(net, "equal", u, 1.0), x, usual)
    return select(net, binary(net, "equal", u, math.inf), u, usual)


def _expm1(net: Network, given: Sequence[Operand]) -> Operand:
    """exp(x) - 1 as 2 sinh(x / 2) exp(x / 2) near 0, where it loses no digits."""
    x = _real(net, given)
    half = binary(net, "prod", x, 0.5)
    near = binary(
        net, "prod", binary(net, "prod", layers.unary(net, "sinh", half), layers.unary(net, "exp", half)), 2.0
    )
    far = binary(net, "sub", layers.unary(net, "exp", x), 1.0)
    return select(net, binary(net, "greater", layers.unary(net, "abs", x), 1.0), far, near)


def _power(net: Network, given: Sequence[Operand]) -> Value:
    base, exponent = given
    return power(net, base, exponent)


def _where(net: Network, given: Sequence[Operand]) -> Operand:
    condition, yes, no = given
    return select(net, truth(net, condition), yes, no)


def _whole(kind: str) -> Call:
    """`math.floor` and the like, which give whole numbers."""
    return lambda net, given: layers.cast(net, layers.unary(net, kind, _real(net, given)), "int64")


def _truncated(net: Network, given: Sequence[Operand]) -> Value:
    return layers.cast(net, as_value(net, given[0], element_type("float32")), "int64")


def _to_float(net: Network, given: Sequence[Operand]) -> Value:
    return _real(net, given)


_BOTH = {"exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "isnan", "isinf"}
_INVERSE = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}


def _calls() -> dict[object, Call]:
    found: dict[object, Call] = {abs: _absolute, min: _extremum("min"), max: _extremum("max")}
    for name in _BOTH:
        found[getattr(math, name)] = found[getattr(np, name)] = _unary(name)
    for name, longer in {**_INVERSE, "atanh": "arctanh"}.items():
        found[getattr(math, name)] = found[getattr(np, longer)] = _unary(name)
    found |= {math.tanh: _tangent, np.tanh: _tangent, math.erf: _unary("erf"), math.fabs: _unary("abs")}
    found |= {math.log1p: _log1p, np.log1p: _log1p, math.expm1: _expm1, np.expm1: _expm1}
    found |= {math.pow: _power, np.power: _power, np.maximum: _extremum("max"), np.minimum: _extremum("min")}
    found |= {math.floor: _whole("floor"), math.ceil: _whole("ceil"), round: _whole("round")}
    found |= {np.floor: _unary("floor"), np.ceil: _unary("ceil"), np.rint: _unary("round"), np.sign: _unary("sign")}
    return found | {int: _truncated, math.trunc: _truncated, float: _to_float, np.abs: _absolute, np.where: _where}


CALLS = _calls()
"""The functions that have a layer, or a few."""
