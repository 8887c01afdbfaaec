"""What scalar regions say about whole numbers among floats: which values are whole, and how one becomes an integer."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

LIMIT = 2.0**22
"""Up to this whole numbers and their sums are exact in float32, and a shift by 1.5 * 2**23 rounds to them."""


def is_whole(value: SSAValue) -> bool:
    """Whether a float is a whole number, where it is finite."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        number = float_constant(value)
        return number is not None and float(number).is_integer()
    if isinstance(owner, arith.MaximumfOp | arith.MinimumfOp | arith.AddfOp | arith.SubfOp):
        return is_whole(owner.lhs) and is_whole(owner.rhs)
    return isinstance(owner, math.RoundEvenOp | arith.SIToFPOp | arith.UIToFPOp)


@dataclass(frozen=True)
class Rounding:
    """`clamp(roundeven(input) + zero, low, high)`, all of them whole numbers."""

    input: SSAValue
    zero: float
    low: float
    high: float

    def without_bounds(self) -> Rounding:
        """The same with whole bounds of the input, such as a rectifier's, as bounds of the result."""
        owner = self.input.owner
        bound = float_constant(owner.rhs) if isinstance(owner, arith.MaximumfOp | arith.MinimumfOp) else None
        if bound is None or not float(bound).is_integer() or abs(bound) > LIMIT / 2:
            return self
        assert isinstance(owner, arith.MaximumfOp | arith.MinimumfOp)
        limit, low, high = bound + self.zero, self.low, self.high
        if isinstance(owner, arith.MaximumfOp):
            low = min(max(low, limit), high)
        else:
            high = max(min(high, limit), low)
        return Rounding(owner.lhs, self.zero, low, high).without_bounds()

    @staticmethod
    def of(op: arith.FPToSIOp) -> Rounding | None:
        """What is rounded before it becomes an integer; None where it is not rounded half to even."""
        value, low, high = op.input, -LIMIT, LIMIT
        while isinstance(value.owner, arith.MaximumfOp | arith.MinimumfOp):
            bound = float_constant(value.owner.rhs)
            if bound is None or not float(bound).is_integer():
                return None
            if isinstance(value.owner, arith.MaximumfOp):
                low = max(low, bound)
            else:
                high = min(high, bound)
            value = value.owner.lhs
        zero = 0.0
        if isinstance(value.owner, arith.AddfOp):
            shift = float_constant(value.owner.rhs)
            if shift is None or not float(shift).is_integer() or abs(shift) > LIMIT / 2:
                return None
            value, zero = value.owner.lhs, float(shift)
        owner = value.owner
        if isinstance(owner, math.RoundEvenOp):
            return Rounding(owner.operand, zero, low, high).without_bounds()
        return Rounding(value, zero, low, high) if is_whole(value) else None


def float_constant(value: SSAValue) -> float | None:
    """The number that a float constant is."""
    owner = value.owner
    constant = owner.value if isinstance(owner, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, FloatAttr) else None
