"""Value ranges of the numbers in a scalar region, by interval arithmetic; for floats also that they are finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.fused.scalar_builder import integer_type

_MAX_FINITE = 1e30  # products of a few numbers up to it stay finite in float64, and this one does in float32
_RELATIVE_SLACK = 1e-6  # relative; more than float32 rounds


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __mul__(self, other: Range) -> Range:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Range(min(ends), max(ends))

    def within(self, low: float, high: float) -> bool:
        return low <= self.low and self.high <= high

    def widened(self) -> Range | None:
        """With room for rounding; None where that is no finite number any more."""
        more = _RELATIVE_SLACK * max(abs(self.low), abs(self.high))
        return Range(self.low - more, self.high + more) if self.within(-_MAX_FINITE, _MAX_FINITE) else None


def type_range(of: Attribute, *, unsigned: bool = False) -> Range | None:
    """The numbers of an integer type; None for another one."""
    if of.name != IntegerType.name:
        return None
    width = integer_type(of).width.data
    return Range(0, 2**width - 1) if unsigned else Range(-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def _either(a: Range, b: Range) -> Range:
    return Range(min(a.low, b.low), max(a.high, b.high))


def _quotient(x: Sequence[Range]) -> Range:
    low, high = x[1].low, x[1].high
    return x[0] * Range(1 / high, 1 / low) if low * high > 0 else _ANY


_ANY = Range(-float("inf"), float("inf"))
Rule = Callable[[Sequence[Range]], Range]
_FLOATS: Mapping[type[Operation], Rule] = {
    arith.DivfOp: _quotient,
    math.ErfOp: lambda _: Range(-1, 1),
    math.TanhOp: lambda _: Range(-1, 1),
    arith.AddfOp: lambda x: x[0] + x[1],
    arith.SubfOp: lambda x: x[0] + -x[1],
    arith.MulfOp: lambda x: x[0] * x[1],
    math.FmaOp: lambda x: x[0] * x[1] + x[2],
}
_EXACT: Mapping[type[Operation], Rule] = {
    arith.NegfOp: lambda x: -x[0],
    math.AbsFOp: lambda x: Range(max(x[0].low, -x[0].high, 0), max(-x[0].low, x[0].high)),
    arith.MaximumfOp: lambda x: Range(max(x[0].low, x[1].low), max(x[0].high, x[1].high)),
    arith.MinimumfOp: lambda x: Range(min(x[0].low, x[1].low), min(x[0].high, x[1].high)),
    math.RoundEvenOp: lambda x: Range(round(x[0].low), round(x[0].high)),
    arith.SelectOp: lambda x: _either(x[1], x[2]),
    arith.ExtFOp: lambda x: x[0],
}
_INTEGERS: Mapping[type[Operation], Rule] = {
    arith.AddiOp: lambda x: x[0] + x[1],
    arith.SubiOp: lambda x: x[0] + -x[1],
    arith.MuliOp: lambda x: x[0] * x[1],
    arith.MaxSIOp: _EXACT[arith.MaximumfOp],
    arith.MinSIOp: _EXACT[arith.MinimumfOp],
    arith.SelectOp: _EXACT[arith.SelectOp],
}


class ValueRanges:
    """The ranges of the values of a region, found when they are asked for.

    Signless integers have one range as signed and one as unsigned numbers.
    """

    def __init__(self) -> None:
        self._signed: dict[SSAValue, Range | None] = {}
        self._unsigned: dict[SSAValue, Range | None] = {}

    def set(self, value: SSAValue, known: Range | None) -> None:
        """What is known of a number from elsewhere."""
        self._signed[value] = known

    def of(self, value: SSAValue) -> Range | None:
        """The range of a float, or of an integer as a signed number; None where it may be any, or not finite."""
        if value not in self._signed:
            self._signed[value] = self._found(value)
        return self._signed[value]

    def unsigned(self, value: SSAValue) -> Range | None:
        """The range of an integer as an unsigned number."""
        if value not in self._unsigned:
            signed = self.of(value)
            known = signed if signed is not None and signed.low >= 0 else type_range(value.type, unsigned=True)
            op = value.owner
            if isinstance(op, arith.BitcastOp) and isinstance(op.input.type, IntegerType):
                known = self.unsigned(op.input)
            elif isinstance(op, arith.TruncIOp):
                whole = self.of(op.input)
                known = whole if whole is not None and known is not None and whole.within(0, known.high) else known
            self._unsigned[value] = known
        return self._unsigned[value]

    def _found(self, value: SSAValue) -> Range | None:
        op, whole = value.owner, type_range(value.type)
        if not isinstance(op, Operation):
            return whole
        if isinstance(op, arith.ConstantOp):
            number = op.value
            return Range(*[number.value.data] * 2) if isinstance(number, FloatAttr | IntegerAttr) else whole
        if isinstance(op, arith.UIToFPOp | arith.ExtUIOp):
            return self.unsigned(op.input)
        if isinstance(op, arith.SIToFPOp | arith.ExtSIOp):
            return self.of(op.input)
        if isinstance(op, arith.FPToSIOp | arith.TruncIOp) or (isinstance(op, arith.BitcastOp) and whole is not None):
            inner = self.of(op.input)
            return inner if inner is not None and whole is not None and inner.within(whole.low, whole.high) else whole
        return self._computed(op, whole)

    def _computed(self, op: Operation, whole: Range | None) -> Range | None:
        rule = _INTEGERS.get(type(op)) if whole is not None else _FLOATS.get(type(op)) or _EXACT.get(type(op))
        operands = [self.of(operand) for operand in op.operands]
        given = [one for one in operands if one is not None]
        if rule is None or len(given) < len(operands):
            return whole
        made = rule(given)
        if whole is not None:
            return made if made.within(whole.low, whole.high) else whole
        return made.widened() if type(op) in _FLOATS else made
