"""One-operand mathematics as scalar formulas."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from xdsl.dialects import math
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.scalar_builder import Scalars, compute_type
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.unary import TESTS, UnaryKind, UnaryOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions

Unary = Callable[[Scalars, SSAValue], SSAValue]


def _apply(made: type[Operation]) -> Unary:
    return lambda s, x: s.function(made, x)


def _round(made: type[Operation]) -> Unary:
    """Integers are whole already."""
    return lambda s, x: s.function(made, x) if s.floating else x


def _sign(s: Scalars, x: SSAValue) -> SSAValue:
    """-1, 0 or 1; not-a-number stays, and -0.0 becomes 0.0, as by a sum with that."""
    zero = s.constant(0)
    rest = s.add(x, zero) if s.floating else zero
    below = zero if s.unsigned else s.select(s.compare("lt", x, zero), s.constant(-1), rest)
    return s.select(s.compare("gt", x, zero), s.constant(1), below)


def _equals(number: float) -> Unary:
    return lambda s, x: s.compare("eq", x, s.constant(number))


_KIND = UnaryKind
FORMULAS: dict[UnaryKind, Unary] = {
    _KIND.EXP: _apply(math.ExpOp),
    _KIND.LOG: _apply(math.LogOp),
    _KIND.SQRT: _apply(math.SqrtOp),
    _KIND.RECIP: lambda s, x: s.div(s.constant(1), x),
    _KIND.ABS: Scalars.abs,
    _KIND.NEG: Scalars.neg,
    _KIND.SIN: _apply(math.SinOp),
    _KIND.COS: _apply(math.CosOp),
    _KIND.TAN: _apply(math.TanOp),
    _KIND.SINH: _apply(math.SinhOp),
    _KIND.COSH: _apply(math.CoshOp),
    _KIND.ASIN: _apply(math.AsinOp),
    _KIND.ACOS: _apply(math.AcosOp),
    _KIND.ATAN: _apply(math.AtanOp),
    _KIND.ASINH: _apply(math.AsinhOp),
    _KIND.ACOSH: _apply(math.AcoshOp),
    _KIND.ATANH: _apply(math.AtanhOp),
    _KIND.CEIL: _round(math.CeilOp),
    _KIND.FLOOR: _round(math.FloorOp),
    _KIND.ROUND: _round(math.RoundEvenOp),
    _KIND.ERF: _apply(math.ErfOp),
    _KIND.SIGN: _sign,
    _KIND.NOT: Scalars.invert,
    _KIND.BITWISE_NOT: Scalars.invert,
    _KIND.ISNAN: lambda s, x: s.compare("ne", x, x),
    _KIND.ISINF: lambda s, x: s.compare("eq", s.abs(x), s.constant(numbers.inf)),
    _KIND.ISINF_POS: _equals(numbers.inf),
    _KIND.ISINF_NEG: _equals(-numbers.inf),
}


def convert_unary(at: Conversion) -> None:
    """`trt.unary` becomes a pointwise op; tests such as isnan yield booleans."""
    op = at.op
    assert isinstance(op, UnaryOp)
    formula = FORMULAS[op.kind.data]
    compute = compute_type(element_of(op.input.type))
    yields = i1 if op.kind.data in TESTS else compute
    at.replace(at.pointwise([op.input], op.output.type, compute, lambda s, x: formula(s, x[0]), yields))


CONVERSIONS: Conversions = {UnaryOp: convert_unary}
