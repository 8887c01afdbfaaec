"""Epilogues that end with the limits of int8: what comes before is narrowed with saturation, several at a time."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i8, i32
from xdsl.ir import Region, SSAValue

from mlirt.kernels.lib.value_ranges.range_analysis import Range, type_range


def without_limits(region: Region) -> Region | None:
    """A copy of an epilogue that yields an i32, to be limited to the range of the result; None where it has no limits.

    %0 = arith.maxsi %x, %low : i32        fused.yield %x : i32
    %1 = arith.minsi %0, %high : i32   ->
    %2 = arith.trunci %1 : i32 to i8
    fused.yield %2 : i8
    """
    copy = region.clone()
    (block,) = copy.blocks
    last = block.last_op
    value = None if last is None or len(last.operands) != 1 else _before_limits(last.operands[0])
    if last is None or value is None:
        return None
    last.operands[0] = value
    for op in reversed(list(block.ops)):
        if op.results and all(result.first_use is None for result in op.results):
            block.erase_op(op)
    return copy


def _before_limits(value: SSAValue) -> SSAValue | None:
    """The integer that becomes a byte within its limits."""
    unsigned = isinstance(value.owner, arith.BitcastOp)
    value = value.owner.operands[0] if isinstance(value.owner, arith.BitcastOp) else value
    limits = type_range(i8, unsigned=unsigned)
    if not isinstance(value.owner, arith.TruncIOp) or value.type != i8 or value.owner.input.type != i32:
        return None
    value = value.owner.input
    assert limits is not None
    known, inner = _bounds(value)
    if not known.within(limits.low, limits.high):
        return None
    while inner and _bound(inner[0]) == (limits.low if isinstance(inner[0], arith.MaxSIOp) else limits.high):
        value, inner = inner[0].lhs, inner[1:]
    return value


def _bounds(value: SSAValue) -> tuple[Range, list[arith.MaxSIOp | arith.MinSIOp]]:
    """Between which numbers the outermost operations keep an integer, and these operations."""
    low, high, found = float("-inf"), float("inf"), list[arith.MaxSIOp | arith.MinSIOp]()
    while isinstance(value.owner, arith.MaxSIOp | arith.MinSIOp):
        op = value.owner
        bound = _bound(op)
        if bound is None:
            break
        # What is limited last wins.
        if isinstance(op, arith.MaxSIOp):
            low = min(max(low, bound), high)
        else:
            high = max(min(high, bound), low)
        found.append(op)
        value = op.lhs
    return Range(low, high), found


def _bound(op: arith.MaxSIOp | arith.MinSIOp) -> int | None:
    owner = op.rhs.owner
    constant = owner.value if isinstance(owner, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, IntegerAttr) else None
