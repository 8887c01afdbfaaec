"""Rules for two-operand arithmetic: neutral elements, and powers that are cheaper as something else."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import splat_of
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.rules import Match, Outcome, Rule, constant, either, layer, number, op, rule, value

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
x = value("x")


@rule(op(ElementwiseOp, x, constant("neutral"), kind=either(*_NEUTRAL)).commuting().named("layer"))
def drop_neutral_operand(layer: ElementwiseOp, x: SSAValue, neutral: SSAValue) -> Outcome:
    """x + 0, x * 1, x - 0, x / 1, x ^ 1 -> x."""
    number, commutes = _NEUTRAL[layer.kind.data]
    fits = (commutes or x is layer.lhs) and x.type == layer.output.type and splat_of(neutral) == number
    return x if fits else None


# max(x, x) -> x; likewise min, and, or.
COMBINE_WITH_ITSELF = Rule(
    op(ElementwiseOp, x, x, kind=either("max", "min", "and", "or", "bit_and", "bit_or")), x, "combine_with_itself"
)
# x ^ 2 -> x * x. x ^ 0.5 is not sqrt(x): that of minus infinity is no number, and that of -0.0 has its sign.
SQUARE = Rule(op(ElementwiseOp, x, number(2), kind="pow"), layer(ElementwiseOp, x, x, kind="prod"), "square")


@rule(op(ElementwiseOp, x, number(-1), kind="pow"))
def invert(m: Match, x: SSAValue) -> Outcome:
    """x ^ -1 -> 1 / x."""
    return m.make(UnaryOp, x, kind="recip") if is_float(element_of(x.type)) else None


@rule(op(SelectOp).named("select"))
def choose_known_branch(select: SelectOp) -> Outcome:
    """select(true, a, b) -> a."""
    condition = splat_of(select.condition)
    same = select.then_input is select.else_input
    kept = select.then_input if same or condition else None if condition is None else select.else_input
    return kept if kept is not None and kept.type == select.output.type else None


@rule(op(ScaleOp).named("layer"))
def drop_empty_scale(layer: ScaleOp) -> Outcome:
    """A scale layer without coefficients, or with neutral ones, gives its input."""
    neutral = ((layer.shift, 0), (layer.scale, 1), (layer.power, 1))
    return layer.input if all(one is None or splat_of(one) == number_ for one, number_ in neutral) else None


RULES = (drop_neutral_operand, COMBINE_WITH_ITSELF, SQUARE, invert, choose_known_branch, drop_empty_scale)
