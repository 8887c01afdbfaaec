"""Laws of two-operand arithmetic: neutral elements, and powers that are cheaper as something else."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import splat_of
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseKindAttr, ElementwiseOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryKindAttr, UnaryOp
from mlirt.passes.cleanup.laws.law import Laws, Site, is_number

_KIND = ElementwiseKind
# The right operand that changes nothing, and whether it may also stand on the left.
_NEUTRAL: dict[ElementwiseKind, tuple[float, bool]] = {
    _KIND.SUM: (0, True),
    _KIND.PROD: (1, True),
    _KIND.SUB: (0, False),
    _KIND.DIV: (1, False),
    _KIND.POW: (1, False),
    _KIND.AND: (True, True),
    _KIND.OR: (False, True),
    _KIND.XOR: (False, True),
    _KIND.BIT_OR: (0, True),
    _KIND.BIT_XOR: (0, True),
    _KIND.SHIFT_LEFT: (0, False),
    _KIND.SHIFT_RIGHT: (0, False),
}
_SAME = frozenset({_KIND.MAX, _KIND.MIN, _KIND.AND, _KIND.OR, _KIND.BIT_AND, _KIND.BIT_OR})


def drop_neutral_operand(at: Site) -> SSAValue | None:
    """x + 0, x * 1, x - 0, x / 1, x ^ 1 -> x."""
    op = at.op
    assert isinstance(op, ElementwiseOp)
    number, commutes = _NEUTRAL.get(op.kind.data, (None, False))
    if number is None:
        return None
    if is_number(op.rhs, number):
        return op.lhs
    return op.rhs if commutes and is_number(op.lhs, number) else None


def combine_with_itself(at: Site) -> SSAValue | None:
    """max(x, x) -> x; likewise min, and, or."""
    op = at.op
    assert isinstance(op, ElementwiseOp)
    return op.lhs if op.kind.data in _SAME and op.lhs is op.rhs else None


def simplify_power(at: Site) -> SSAValue | None:
    """x ^ 2 -> x * x, x ^ -1 -> 1 / x.

    x ^ 0.5 is not sqrt(x): that of minus infinity is no number, and that of -0.0 has its sign.
    """
    op = at.op
    assert isinstance(op, ElementwiseOp)
    if op.kind.data is not _KIND.POW:
        return None
    exponent = splat_of(op.rhs)
    if exponent == 2:
        return at.make(ElementwiseOp, [op.lhs, op.lhs], {"kind": ElementwiseKindAttr(_KIND.PROD)})
    if exponent != -1 or not is_float(element_of(op.lhs.type)):
        return None
    return at.make(UnaryOp, [op.lhs], {"kind": UnaryKindAttr(UnaryKind.RECIP)})


def choose_known_branch(at: Site) -> SSAValue | None:
    """select(true, a, b) -> a."""
    op = at.op
    assert isinstance(op, SelectOp)
    if op.then_input is op.else_input:
        return op.then_input
    condition = splat_of(op.condition)
    return None if condition is None else op.then_input if condition else op.else_input


def drop_empty_scale(at: Site) -> SSAValue | None:
    """A scale layer without coefficients, or with neutral ones, gives its input."""
    op = at.op
    assert isinstance(op, ScaleOp)
    neutral = ((op.shift, 0), (op.scale, 1), (op.power, 1))
    return op.input if all(value is None or is_number(value, number) for value, number in neutral) else None


LAWS: Laws = {
    ElementwiseOp: (drop_neutral_operand, combine_with_itself, simplify_power),
    SelectOp: (choose_known_branch,),
    ScaleOp: (drop_empty_scale,),
}
