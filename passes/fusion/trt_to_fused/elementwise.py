"""Layers of two or three operands, choices and parametric activations as scalar formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import SSAValue

from mlirt.dialects.fused.scalar_builder import Scalars, compute_type
from mlirt.dialects.kernel.remainder import RemFOp
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.elementwise import COMPARISONS, ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.multiply_add import MultiplyAddOp
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions

Binary = Callable[[Scalars, SSAValue, SSAValue], SSAValue]


def _floor_div(s: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    if s.floating:
        return s.function(math.FloorOp, s.div(a, b))
    if s.unsigned:
        return s.div(a, b)
    return s.guarded(b, lambda safe: s.add_op(arith.FloorDivSIOp(a, safe)))


def _remainder(s: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """The remainder of the truncated division, with the sign of the dividend."""
    if s.floating:
        return s.add_op(RemFOp(a, b))
    return s.guarded(b, lambda safe: s.add_op((arith.RemUIOp if s.unsigned else arith.RemSIOp)(a, safe)))


def _modulo(s: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """The remainder of the floored division, with the sign of the divisor."""
    if s.unsigned:
        return _remainder(s, a, b)
    rest, zero = _remainder(s, a, b), s.constant(0)
    boolean = IntegerType(1)
    signs_differ = s.on(boolean).add_op(arith.XOrIOp(s.compare("lt", rest, zero), s.compare("lt", b, zero)))
    shifted = s.on(boolean).add_op(arith.AndIOp(s.compare("ne", rest, zero), signs_differ))
    result = s.select(shifted, s.add(rest, b), rest)
    # A remainder of zero has the divisor's sign as well.
    return s.function(math.CopySignOp, result, b) if s.floating else result


def _power(s: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """Floating-point powers; integer ones by squaring, where a negative exponent gives 0 unless the base is 1 or -1."""
    return s.function(math.PowFOp, a, b) if s.floating else _integer_power(s, a, b)


def _integer_power(s: Scalars, base: SSAValue, exponent: SSAValue) -> SSAValue:
    if not s.unsigned:
        return s.add_op(math.IPowIOp(base, exponent))
    # The op reads exponents as signed ones. An odd number to the power of the sign's bit is 1, an even one 0.
    zero, one, width = s.constant(0), s.constant(1), s.integer.width.data
    short = s.add_op(arith.AndIOp(exponent, s.constant(2 ** (width - 1) - 1)))
    is_even = s.compare("eq", s.add_op(arith.AndIOp(base, one)), zero)
    is_long = s.add_op(arith.AndIOp(s.compare("ne", short, exponent), is_even))
    return s.select(is_long, zero, s.add_op(math.IPowIOp(base, short)))


def _shift_left(s: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """Machines leave a distance of the width or more open; here all bits are gone then."""
    inside = s.add_op(arith.CmpiOp(b, s.constant(s.integer.width.data), "ult"))
    return s.select(inside, s.add_op(arith.ShLIOp(a, s.select(inside, b, s.constant(0)))), s.constant(0))


def _shift_right(s: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """As `_shift_left`; of a signed number only copies of the sign are left."""
    last = s.constant(s.integer.width.data - 1)
    inside = s.add_op(arith.CmpiOp(b, last, "ule"))
    distance = s.select(inside, b, last)
    if not s.unsigned:
        return s.add_op(arith.ShRSIOp(a, distance))
    return s.select(inside, s.add_op(arith.ShRUIOp(a, distance)), s.constant(0))


def _compare(predicate: str) -> Binary:
    return lambda s, a, b: s.compare(predicate, a, b)


_KIND = ElementwiseKind
FORMULAS: dict[ElementwiseKind, Binary] = {
    _KIND.SUM: Scalars.add,
    _KIND.PROD: Scalars.mul,
    _KIND.MAX: Scalars.max,
    _KIND.MIN: Scalars.min,
    _KIND.SUB: Scalars.sub,
    _KIND.DIV: Scalars.div,
    _KIND.POW: _power,
    _KIND.FLOOR_DIV: _floor_div,
    _KIND.MOD: _modulo,
    _KIND.FMOD: _remainder,
    _KIND.AND: lambda s, a, b: s.add_op(arith.AndIOp(a, b)),
    _KIND.OR: lambda s, a, b: s.add_op(arith.OrIOp(a, b)),
    _KIND.XOR: lambda s, a, b: s.add_op(arith.XOrIOp(a, b)),
    _KIND.BIT_AND: lambda s, a, b: s.add_op(arith.AndIOp(a, b)),
    _KIND.BIT_OR: lambda s, a, b: s.add_op(arith.OrIOp(a, b)),
    _KIND.BIT_XOR: lambda s, a, b: s.add_op(arith.XOrIOp(a, b)),
    _KIND.SHIFT_LEFT: _shift_left,
    _KIND.SHIFT_RIGHT: _shift_right,
    _KIND.EQUAL: _compare("eq"),
    _KIND.GREATER: _compare("gt"),
    _KIND.LESS: _compare("lt"),
    _KIND.GREATER_EQUAL: _compare("ge"),
    _KIND.LESS_EQUAL: _compare("le"),
}


def convert_elementwise(at: Conversion) -> None:
    """`trt.elementwise` becomes a pointwise op; a comparison computes in its operands' type and yields a boolean."""
    op = at.op
    assert isinstance(op, ElementwiseOp)
    kind, element = op.kind.data, element_of(op.lhs.type)
    compute = compute_type(element)
    yields = i1 if kind in COMPARISONS else compute
    formula = FORMULAS[kind]
    at.replace(at.pointwise([op.lhs, op.rhs], op.output.type, compute, lambda s, x: formula(s, x[0], x[1]), yields))


def convert_select(at: Conversion) -> None:
    """`trt.select` becomes a pointwise choice; the operands keep their type."""
    op = at.op
    assert isinstance(op, SelectOp)
    operands = [op.condition, op.then_input, op.else_input]
    element = element_of(op.output.type)
    at.replace(at.pointwise(operands, op.output.type, None, lambda s, x: s.select(x[0], x[1], x[2]), element))


def convert_parametric_relu(at: Conversion) -> None:
    """`trt.parametric_relu` becomes x where x >= 0, else slope * x."""
    op = at.op
    assert isinstance(op, ParametricReluOp)

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        return s.select(s.compare("ge", x[0], s.constant(0)), x[0], s.mul(x[0], x[1]))

    at.replace(at.pointwise([op.input, op.slope], op.output.type, compute_type(element_of(op.input.type)), formula))


def convert_multiply_add(at: Conversion) -> None:
    """`trt.multiply_add` becomes one fused multiplication and addition."""
    op = at.op
    assert isinstance(op, MultiplyAddOp)
    element = element_of(op.output.type)
    at.replace(at.pointwise(list(op.operands), op.output.type, element, lambda s, x: s.function(math.FmaOp, *x)))


CONVERSIONS: Conversions = {
    ElementwiseOp: convert_elementwise,
    MultiplyAddOp: convert_multiply_add,
    SelectOp: convert_select,
    ParametricReluOp: convert_parametric_relu,
}
