"""Scalar expressions that CUDA source writes differently: 32-bit indices, bfloat16 as bits, safe divisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float64Type, FloatAttr, IndexType, IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute, Operation

from mlirt.codegen.python_expressions import (
    ATOM,
    COMPARISON,
    Expression,
    Rule,
    call,
    expressions_for,
    type_name,
)

# The predicates of arith.cmpi that compare unsigned numbers, in MLIR's order.
_FIRST_UNSIGNED = 6
_UNSIGNED = ("<", "<=", ">", ">=")
_PLAIN = expressions_for("cuda")


@dataclass(frozen=True)
class Narrow(Expression):
    """A 32-bit index: `text` is narrowed, as numba would widen it; `wide` is the text before, for sums and products."""

    wide: Expression = field(default_factory=lambda: Expression(""))

    @staticmethod
    def of(wide: Expression) -> Narrow:
        return Narrow(f"int32({wide.text})", ATOM, wide)


def widest(operand: Expression) -> Expression:
    """The text of an operand whose upper bits do not matter."""
    return operand.wide if isinstance(operand, Narrow) else operand


def bare(operand: Expression) -> Expression:
    """A number without its type, for where something else decides about it; other operands as they are."""
    return operand.wide if isinstance(operand, Narrow) and operand.wide.text.isdecimal() else operand


def _typed_by_others(rule: Rule, first: int = 0) -> Rule:
    """Numbers among the operands from the `first` one on take the type of the others."""

    def narrow(op: Operation, operands: Sequence[Expression]) -> Expression:
        plain = [*operands[:first], *map(bare, operands[first:])]
        decided = any(one is before for one, before in zip(plain[first:], operands[first:], strict=True))
        return rule(op, plain if decided and isinstance(op.operands[-1].type, IndexType) else operands)

    return narrow


def stored_name(type_: Attribute) -> str:
    """What memory and fragments hold elements of a type as: booleans are bytes, 0 or 1."""
    name = type_name(type_)
    return "uint8" if name == "bool_" else name


def from_stored(text: str, type_: Attribute) -> Expression:
    """A number, given what memory holds."""
    return Expression(f"{text} != uint8(0)", COMPARISON) if type_name(type_) == "bool_" else Expression(text)


def to_stored(text: str, type_: Attribute) -> str:
    """What memory holds, given a number."""
    return f"uint8({text})" if type_name(type_) == "bool_" else text


def _ring(rule: Rule) -> Rule:
    """Sums and products: the lower bits of the result depend on the lower bits of the operands alone."""

    def narrow(op: Operation, operands: Sequence[Expression]) -> Expression:
        if not isinstance(op.results[0].type, IndexType):
            return rule(op, operands)
        return Narrow.of(rule(op, [widest(operand) for operand in operands]))

    return narrow


def _narrowed(rule: Rule) -> Rule:
    def narrow(op: Operation, operands: Sequence[Expression]) -> Expression:
        result = rule(op, operands)
        return Narrow.of(result) if isinstance(op.results[0].type, IndexType) else result

    return narrow


def _unsigned_division(function: str, otherwise: Rule) -> Rule:
    """Indices are not negative where they are divided as unsigned numbers: 31 bits hold them, and the result."""

    def rule(op: Operation, operands: Sequence[Expression]) -> Expression:
        if not isinstance(op.results[0].type, IndexType):
            return otherwise(op, operands)
        text = f"{function}({', '.join(widest(operand).text for operand in operands)})"
        return Narrow(text, ATOM, Expression(text))

    return rule


def _compare(op: Operation, operands: Sequence[Expression]) -> Expression:
    """Unsigned comparisons of indices, in 32 bits."""
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    if predicate.value.data < _FIRST_UNSIGNED or not isinstance(op.operands[0].type, IndexType):
        return _typed_by_others(CUDA_EXPRESSIONS["arith.cmpi"])(op, operands)
    left, right = (f"uint32({widest(operand).text})" for operand in operands)
    return Expression(f"{left} {_UNSIGNED[predicate.value.data - _FIRST_UNSIGNED]} {right}", COMPARISON)


def _constant(op: Operation, operands: Sequence[Expression]) -> Expression:
    plain = CUDA_EXPRESSIONS["arith.constant"](op, operands)
    return Narrow.of(plain) if isinstance(op.results[0].type, IndexType) else plain


def _index_cast(op: Operation, operands: Sequence[Expression]) -> Expression:
    (number,), source, target = operands, op.operands[0].type, op.results[0].type
    if isinstance(target, IndexType):
        return Narrow(number.text, number.precedence, number) if source == i32 else Narrow.of(number)
    has_type = target == i32 and isinstance(number, Narrow)
    return Expression(number.text) if has_type else Expression(f"{type_name(target)}({number.text})")


def _extend(op: Operation, operands: Sequence[Expression]) -> Expression:
    if not isinstance(op.operands[0].type, BFloat16Type):
        return _PLAIN["arith.extf"](op, operands)
    wide = f"float32_of_bfloat16({operands[0].text})"
    return Expression(f"float64({wide})" if isinstance(op.results[0].type, Float64Type) else wide)


def _truncate(op: Operation, operands: Sequence[Expression]) -> Expression:
    if not isinstance(op.results[0].type, BFloat16Type):
        return _PLAIN["arith.truncf"](op, operands)
    return Expression(f"bfloat16({operands[0].text})")


_SUMS = (arith.AddfOp, arith.SubfOp)
_CONVERSIONS = (arith.SIToFPOp, arith.UIToFPOp, arith.FPToSIOp, arith.FPToUIOp, arith.BitcastOp)


def is_rounded_to_integers(op: Operation) -> bool:
    """Whether numbers in an op come from integers, become some or are rounded, other than from positions in a tensor.

    Then one rounding more or less is one step more or less of a quantised result: sums keep their products apart.
    """
    return any(isinstance(inner, math.RoundEvenOp) or _converts(inner) for inner in op.walk())


def _converts(op: Operation) -> bool:
    if not isinstance(op, _CONVERSIONS) or isinstance(op.operands[0].owner, arith.IndexCastOp):
        return False
    source, target = (isinstance(value.type, IntegerType) for value in (*op.operands, *op.results))
    return source != target


def _separate_product(op: Operation, operands: Sequence[Expression]) -> Expression:
    """A product that is rounded before it is added to something."""
    is_added = any(isinstance(use.operation, _SUMS) for use in op.results[0].uses)
    return (call("rounded_product") if is_added else _PLAIN["arith.mulf"])(op, operands)


# What replaces other rules where numbers are rounded to integers.
SEPARATE_PRODUCTS: Mapping[str, Rule] = {"arith.mulf": _separate_product}

# What replaces other rules where the time of each function counts, and the last bits of its result do not.
CLOSE_FUNCTIONS: Mapping[str, Rule] = {
    "arith.divf": call("divide_closely"),
    "math.exp": call("exp_closely"),
    "math.tanh": call("tanh_closely"),
}


def _to_integer(op: Operation, operands: Sequence[Expression]) -> Expression:
    """Devices give 0 for not-a-number where neither side has 64 bits."""
    widths = [getattr(value.type, "bitwidth", 64) for value in (*op.operands, *op.results)]
    number = Expression(f"nan_as_zero({operands[0].text})") if 64 in widths else operands[0]
    return _PLAIN[op.name](op, [number])


def _power(op: Operation, operands: Sequence[Expression]) -> Expression:
    exponent = op.operands[1].owner
    known = exponent.value if isinstance(exponent, arith.ConstantOp) else None
    if isinstance(known, FloatAttr) and known.value.data == 0.5:
        return Expression(f"power_of_half({operands[0].text})")
    return call("power")(op, operands)


CUDA_EXPRESSIONS: Mapping[str, Rule] = {
    **_PLAIN,
    "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer,
    "math.powf": _power,
    "arith.extf": _extend,
    "arith.truncf": _truncate,
}

# With 32-bit indices.
NARROW_EXPRESSIONS: Mapping[str, Rule] = {
    **CUDA_EXPRESSIONS,
    "arith.constant": _constant,
    "arith.index_cast": _index_cast,
    "arith.cmpi": _compare,
    "arith.select": _typed_by_others(CUDA_EXPRESSIONS["arith.select"], 1),
    **{
        f"arith.{name}": _typed_by_others(CUDA_EXPRESSIONS[f"arith.{name}"])
        for name in ("minsi", "maxsi", "divsi", "remsi", "floordivsi", "ceildivsi")
    },
    **{
        f"arith.{name}": _ring(CUDA_EXPRESSIONS[f"arith.{name}"])
        for name in ("addi", "subi", "muli", "andi", "ori", "xori")
    },
    **{f"arith.{name}": _narrowed(CUDA_EXPRESSIONS[f"arith.{name}"]) for name in ("shli", "shrsi")},
    "arith.divui": _unsigned_division("div", CUDA_EXPRESSIONS["arith.divui"]),
    "arith.remui": _unsigned_division("rem", CUDA_EXPRESSIONS["arith.remui"]),
}
