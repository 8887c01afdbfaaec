"""The Python expression for each scalar op of `arith` and `math`: from its row in `dialects/scalar_ops.py`, or by hand.

A rule is a template over operands. The functions that it names (`maximum`, `select`, `exp`, `float32`, ..) form the
vocabulary that every target provides, by the library that its generated text imports or by another rule for the op.
All of them take vectors as well as scalars where a target has vectors, so that one text serves both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.scalar_ops import SCALAR_OPS, ScalarText
from mlirt.dialects.tensor_types import element_name, is_float8
from mlirt.errors import CompileError

# How tightly Python binds, loosest first.
LOOSE, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(10)


@dataclass(frozen=True)
class Expression:
    """Python text and how tightly its outermost operator binds."""

    text: str
    precedence: int = ATOM

    def within(self, precedence: int) -> str:
        """The text where an operator of that precedence needs it, parenthesised if it binds less tightly."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def literal(value: SSAValue) -> int | None:
    """The number that an index, an integer or a condition is, where it is a constant."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "arith.constant":
        return None
    attribute = owner.properties["value"]
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


Rule: TypeAlias = Callable[[Operation, Sequence[Expression]], Expression]


def type_name(type_: Attribute) -> str:
    """The name of a scalar type's conversion function: `float32`, `uint8`, `bool_`; `index` is `int64`.

    An 8-bit float is held as its bits.
    """
    if isinstance(type_, IndexType):
        return "int64"
    if is_float8(type_):
        return "int8"
    try:
        name = element_name(type_)
    except KeyError:
        raise CompileError(f"{type_} is no scalar that generated Python source can hold") from None
    return "bool_" if name == "bool" else name


def call(function: str) -> Rule:
    """`function(a, b, ..)`."""
    return lambda op, operands: Expression(f"{function}({', '.join(o.text for o in operands)})")


def infix(operator: str, precedence: int, *, associative: bool = False) -> Rule:
    """`a operator b`, parentheses where Python needs them."""

    def rule(op: Operation, operands: Sequence[Expression]) -> Expression:
        left, right = operands
        return Expression(
            f"{left.within(precedence)} {operator} {right.within(precedence + (not associative))}", precedence
        )

    return rule


def prefix(operator: str) -> Rule:
    """`operator a`."""
    return lambda op, operands: Expression(f"{operator}{operands[0].within(UNARY)}", UNARY)


def narrowed(rule: Rule) -> Rule:
    """Integer arithmetic that wraps around at the width of its type: Python (and numba) would widen it."""

    def wrapped(op: Operation, operands: Sequence[Expression]) -> Expression:
        result = rule(op, operands)
        name = type_name(op.results[0].type)
        return result if name in ("int64", "bool_") else Expression(f"{name}({result.text})")

    return wrapped


def as_unsigned(rule: Rule) -> Rule:
    """An op that reads the bits of its integers as unsigned numbers, with a result of the operands' own type."""

    def wrapped(op: Operation, operands: Sequence[Expression]) -> Expression:
        names = [_unsigned_name(operand.type) for operand in op.operands]
        numbers = [literal(one) for one in op.operands]
        texts = [o.text if n is None or n < 0 else str(n) for n, o in zip(numbers, operands, strict=True)]
        inner = rule(op, [Expression(f"{name}({text})") for name, text in zip(names, texts, strict=True)])
        result = op.results[0].type
        return inner if type_name(result) == "bool_" else Expression(f"{type_name(result)}({inner.text})")

    return wrapped


def _unsigned_name(type_: Attribute) -> str:
    name = type_name(type_)
    return name if name.startswith("u") or name == "bool_" else f"u{name}"


def _convert(op: Operation, operands: Sequence[Expression]) -> Expression:
    return Expression(f"{type_name(op.results[0].type)}({operands[0].text})")


def _convert_unsigned(op: Operation, operands: Sequence[Expression]) -> Expression:
    name = _unsigned_name(op.operands[0].type)
    source = operands[0].text if name == "bool_" else f"{name}({operands[0].text})"
    return Expression(f"{type_name(op.results[0].type)}({source})")


def _float_to_unsigned(op: Operation, operands: Sequence[Expression]) -> Expression:
    result = op.results[0].type
    bits = f"{_unsigned_name(result)}({operands[0].text})"
    return Expression(bits if _unsigned_name(result) == type_name(result) else f"{type_name(result)}({bits})")


def _convert_signed(op: Operation, operands: Sequence[Expression]) -> Expression:
    """A signed `i1` is 0 or -1, which Python's booleans are not."""
    converted = _convert(op, operands)
    return Expression(f"-{converted.text}", UNARY) if type_name(op.operands[0].type) == "bool_" else converted


def _index_cast(op: Operation, operands: Sequence[Expression]) -> Expression:
    same = type_name(op.operands[0].type) == type_name(op.results[0].type)
    return operands[0] if same else _convert_signed(op, operands)


def _bitcast(op: Operation, operands: Sequence[Expression]) -> Expression:
    same = type_name(op.operands[0].type) == type_name(op.results[0].type)
    return operands[0] if same else Expression(f"bits_as_{type_name(op.results[0].type)}({operands[0].text})")


def constant_text(value: float, type_: Attribute) -> Expression:
    """A number of a scalar type: `4` for an index, `float32(0.5)`, `True`."""
    name = type_name(type_)
    if name == "bool_":
        return Expression("True" if value else "False")
    text = _shortest_float32(value) if name == "float32" else repr(value)
    number = Expression(text, UNARY if text.startswith("-") else ATOM)
    if name == "int64" or (name == "float64" and text.lstrip("-") not in ("inf", "nan")):
        return number
    return Expression(f"{name}({text})")


def _shortest_float32(value: float) -> str:
    """As few digits as give the same float32."""
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        if text.lstrip("-") in ("inf", "nan") or struct.pack("f", float(text)) == struct.pack("f", value):
            return repr(float(text))
    return repr(value)


def _constant(op: Operation, operands: Sequence[Expression]) -> Expression:
    value = op.properties["value"]
    if not isinstance(value, IntegerAttr | FloatAttr):
        raise CompileError(f"arith.constant with {value} has no Python text: only numbers have")
    return constant_text(value.value.data, op.results[0].type)


# The order of the predicates as MLIR numbers them.
_CMPI = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED = 6
_CMPF = ("false", "==", ">", ">=", "<", "<=", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "!=", "uno", "true")
# Unordered comparisons are true for NaN: the opposite of the ordered opposite.
_OPPOSITE = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}


def _predicate(op: Operation) -> int:
    attr = op.properties["predicate"]
    assert isinstance(attr, IntegerAttr)
    return attr.value.data


def _compare_integers(op: Operation, operands: Sequence[Expression]) -> Expression:
    rule = _comparison(_CMPI[_predicate(op)])
    return (as_unsigned(rule) if _predicate(op) >= _FIRST_UNSIGNED else rule)(op, operands)


def _comparison(operator: str) -> Rule:
    """`a operator b`; parentheses around operands that are comparisons, for Python reads `a < b == c` as a chain."""
    return lambda op, operands: Expression(f" {operator} ".join(o.within(BIT_OR) for o in operands), COMPARISON)


def _compare_floats(op: Operation, operands: Sequence[Expression]) -> Expression:
    name = _CMPF[_predicate(op)]
    a, b = (operand.within(BIT_OR) for operand in operands)
    if name in ("true", "false"):
        return Expression(name.capitalize())
    if name in _OPPOSITE:
        return Expression(f"logical_not({a} {_OPPOSITE[name]} {b})")
    if name == "one":
        return Expression(f"({a} < {b}) | ({a} > {b})", BIT_OR)
    if name == "ueq":
        return Expression(f"logical_not(({a} < {b}) | ({a} > {b}))")
    if name in ("ord", "uno"):
        operator, joint, precedence = ("==", "&", BIT_AND) if name == "ord" else ("!=", "|", BIT_OR)
        if a == b:
            return Expression(f"{a} {operator} {a}", COMPARISON)
        return Expression(f"({a} {operator} {a}) {joint} ({b} {operator} {b})", precedence)
    return Expression(f"{a} {name} {b}", COMPARISON)


def _operator(text: ScalarText) -> Rule:
    """`a operator b`, or `operator a` of one operand."""
    one, two = prefix(text.word), infix(text.word, _PRECEDENCE[text.word], associative=text.associative)
    return lambda op, operands: (one if len(operands) == 1 else two)(op, operands)


def _rule(text: ScalarText) -> Rule:
    rule = _operator(text) if text.is_operator else call(text.word)
    rule = as_unsigned(rule) if text.unsigned else rule
    return narrowed(rule) if text.wraps else rule


_PRECEDENCE = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "&": BIT_AND, "|": BIT_OR, "^": BIT_XOR, "<<": SHIFT, ">>": SHIFT,
}  # fmt: skip
_BY_HAND: Mapping[str, Rule] = {
    "arith.constant": _constant,
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.index_cast": _index_cast,
    "arith.sitofp": _convert_signed,
    "arith.uitofp": _convert_unsigned,
    "arith.fptosi": _convert,
    "arith.fptoui": _float_to_unsigned,
    "arith.extf": _convert,
    "arith.truncf": _convert,
    "arith.trunci": _convert,
    "arith.extsi": _convert_signed,
    "arith.extui": _convert_unsigned,
    "arith.bitcast": _bitcast,
}
"""Ops whose text depends on more than their operands' texts: on types, numbers and predicates."""


def expressions_for(target: str) -> Mapping[str, Rule]:
    """The rules of all scalar ops by name, for `cpu` or `cuda`."""
    return {**{name: _rule(op.text_for(target)) for name, op in SCALAR_OPS.items()}, **_BY_HAND}
