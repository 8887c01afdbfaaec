"""Operators and arithmetic functions on scalars and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.basic_operations import exact_fma, to_whole
from mlirt.builder.numba_cpu_intrinsics.lane_types import Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.lane_value import maximum as larger
from mlirt.builder.numba_cpu_intrinsics.lane_value import minimum as smaller
from mlirt.builder.numba_cpu_intrinsics.lanewise import as_type, binary, joint_type, ternary, unary, vector_operator
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, operator, types

vector_operator(operator.add, lambda a, b: a + b)
vector_operator(operator.sub, lambda a, b: a - b)
vector_operator(operator.mul, lambda a, b: a * b)
vector_operator(operator.truediv, lambda a, b: a / b)
vector_operator(operator.mod, lambda a, b: a % b)
vector_operator(operator.and_, lambda a, b: a & b)
vector_operator(operator.or_, lambda a, b: a | b)
vector_operator(operator.xor, lambda a, b: a ^ b)
vector_operator(operator.lshift, lambda a, b: a << b)
vector_operator(operator.rshift, lambda a, b: a >> b)
vector_operator(operator.lt, lambda a, b: a.compare("<", b), boolean=True)
vector_operator(operator.le, lambda a, b: a.compare("<=", b), boolean=True)
vector_operator(operator.gt, lambda a, b: a.compare(">", b), boolean=True)
vector_operator(operator.ge, lambda a, b: a.compare(">=", b), boolean=True)
vector_operator(operator.eq, lambda a, b: a.compare("==", b), boolean=True)
vector_operator(operator.ne, lambda a, b: a.compare("!=", b), boolean=True)
vector_operator(operator.neg, lambda a, _: -a, count=1)


def _floor_div(a: Value, b: Value) -> Value:
    quotient = a / b
    inexact = (quotient * b).compare("!=", a) & ((a < 0) ^ (b < 0))
    return inexact.choose(quotient - 1, quotient)


vector_operator(operator.floordiv, _floor_div)

maximum = binary(larger)
minimum = binary(smaller)
maxnum = binary(lambda a, b: a.intrinsic("maxnum", b))
minnum = binary(lambda a, b: a.intrinsic("minnum", b))
rounded_product = binary(lambda a, b: a.rounded_product(b))
fma = ternary(exact_fma)
absolute = unary(lambda x: x.intrinsic("fabs") if x.is_float else (x < 0).choose(-x, x))
logical_not = unary(lambda x: ~x)
copysign = binary(lambda a, b: a.intrinsic("copysign", b))
ceil = unary(lambda x: to_whole(x, "ceil"))
floor = unary(lambda x: to_whole(x, "floor"))
trunc = unary(lambda x: to_whole(x, "trunc"))
round = unary(lambda x: to_whole(x, "round"))
roundeven = unary(lambda x: to_whole(x, "roundeven"))


def _nonzero(b: Value) -> Value:
    """A divisor that cannot trap: what division by zero gives is not specified, but it must return."""
    return b.compare("==", 0).choose(b.number(1), b)


def _safe_quotient(a: Value, b: Value) -> Value:
    """The quotient rounded toward zero; processors trap where the least number is divided by -1, here it stays."""
    if not a.is_signed:
        return a / _nonzero(b)
    negates = b.compare("==", -1)
    return negates.choose(-a, a / _nonzero(negates.choose(b.number(1), b)))


@binary
def truncated_rem(a: Value, b: Value) -> Value:
    """The remainder of the quotient rounded toward zero."""
    return a % _nonzero(b.compare("==", -1).choose(b.number(1), b) if a.is_signed else b)


@binary
def floor_div(a: Value, b: Value) -> Value:
    """The quotient rounded down."""
    quotient = _safe_quotient(a, b)
    inexact = (quotient * b).compare("!=", a) & ((a < 0) ^ (b < 0))
    return inexact.choose(quotient - 1, quotient)


truncated_div = binary(_safe_quotient)


def _as_unsigned(operator: Callable[[Value, Value], Value]) -> Any:
    """An operator on the bits of integers, read as unsigned numbers."""

    def formula(a: Value, b: Value) -> Value:
        kind = getattr(types, f"uint{a.width}")
        return a.like(operator(a.like(a.llvm, kind), _nonzero(b.like(b.llvm, kind))).llvm)

    return binary(formula)


unsigned_div = _as_unsigned(lambda a, b: a / b)
unsigned_rem = _as_unsigned(lambda a, b: a % b)


@binary
def ceil_div(a: Value, b: Value) -> Value:
    """The quotient rounded up."""
    divisor = _nonzero(b)
    quotient = a / divisor
    inexact = (quotient * divisor).compare("!=", a) & ~((a < 0) ^ (divisor < 0))
    return inexact.choose(quotient + 1, quotient)


@intrinsic
def select(context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds, else `no`."""
    value = joint_type(context, [yes, no])
    if value is None:
        return None
    lanes = max(operand.lanes if isinstance(operand, Vector) else 0 for operand in (condition, value))
    result = Vector(value.element if isinstance(value, Vector) else value, lanes) if lanes else value

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        which, *values = (Value.of(builder, llvm, of) for llvm, of in zip(operands, sig.args, strict=True))
        picked, other = (as_type(value, result) for value in values)
        boolean = Vector(types.boolean, which.lanes) if which.lanes else types.boolean
        return as_type(which, boolean).choose(picked, other).llvm

    return result(condition, yes, no), codegen
