"""What ops on integers make of intervals (`intervals.py`), by name; where there is no rule, anything of the type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from mlirt.builder.extents import intervals
from mlirt.builder.extents.integer_types import bits_of
from mlirt.builder.extents.intervals import ANY, Interval, Mask, exactly, never_below

Rule: TypeAlias = "Callable[[Operation, Sequence[Interval], Mask], Interval]"

_MAX_SHIFT = 40
_UNKNOWN_TRUTH = intervals.between(0, 1)


def _plain(combine: Callable[[Interval, Interval], Interval]) -> Rule:
    return lambda op, given, active: combine(*given)


def _constant(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    assert isinstance(op, arith.ConstantOp)
    if not isinstance(op.value, IntegerAttr):
        return ANY
    value = op.value.value.data
    return exactly(abs(value) if _is_truth(op) else value)


def _divided(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    """Of numbers that are at least 0, for which all ways to divide agree."""
    left, right = given
    return intervals.floor_divide(left, right, active) if never_below(left, 0, active) else ANY


def _divided_down(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return intervals.floor_divide(left, right, active)


def _remainder(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return intervals.remainder(left, right, active)


def _divided_up(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return intervals.floor_divide(intervals.add(left, intervals.subtract(right, exactly(1))), right, active)


def _selected(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    condition, yes, no = given
    return intervals.choose(condition, yes, no, active)


def _truth_of(combine: Callable[[Interval, Interval], Interval]) -> Rule:
    return lambda op, given, active: combine(*given) if _is_truth(op) else ANY


def _exclusive(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    if not _is_truth(op):
        return ANY
    left, right = given
    return intervals.opposite(intervals.equal(left, right))


def _power_of_2(exponents: Interval) -> Interval | None:
    known = exponents.exact
    is_small = known is not None and not ((known < 0) | (known > _MAX_SHIFT)).any()
    return exactly(1 << known) if known is not None and is_small else None


def _shifted_left(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return ANY if (power := _power_of_2(right)) is None else intervals.multiply(left, power)


def _shifted_right(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return ANY if (power := _power_of_2(right)) is None else _divided(op, [left, power], active)


def _converted(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    """What does not fit into the type of the result is left to whoever sets it."""
    (source,) = given
    return ANY if op.name == "arith.extsi" and bits_of(op.operands[0].type) == 1 else source


def _zero_extended(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    (source,) = given
    return source if never_below(source, 0, active) else ANY


_COMPARED: Mapping[int, Callable[[Interval, Interval], Interval]] = {
    0: intervals.equal,
    1: lambda a, b: intervals.opposite(intervals.equal(a, b)),
    2: intervals.less,
    3: lambda a, b: intervals.less(a, b, or_equal=True),
    4: lambda a, b: intervals.less(b, a),
    5: lambda a, b: intervals.less(b, a, or_equal=True),
}
_NEGATED = {0: 1, 1: 0, 2: 5, 3: 4, 4: 3, 5: 2}
_UNSIGNED = {6: 2, 7: 3, 8: 4, 9: 5}  # predicates, and the signed ones that agree with them


def _compared(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    assert isinstance(op, arith.CmpiOp)
    predicate = op.predicate.value.data
    left, right = given
    if predicate not in _UNSIGNED:
        return _COMPARED[predicate](left, right)
    signed = _UNSIGNED[predicate]
    if predicate in (8, 9):  # greater: the other way round
        left, right, signed = right, left, signed - 2
    if not never_below(right, 0, active):
        return _UNKNOWN_TRUTH
    # What is negative is as large as can be.
    is_natural = intervals.less(exactly(0), left, or_equal=True)
    return intervals.both(is_natural, _COMPARED[signed](left, right))


def _is_truth(op: Operation) -> bool:
    return bits_of(op.results[0].type) == 1


def narrowed(
    condition: SSAValue, is_true: bool, value: Callable[[SSAValue], Interval], active: Mask
) -> Iterator[tuple[SSAValue, Interval]]:
    """The numbers that are not known, with what is known of them where a condition is true, or false."""
    op = condition.owner
    if isinstance(op, arith.AndIOp if is_true else arith.OrIOp):
        for operand in op.operands:
            yield from narrowed(operand, is_true, value, active)
    if not isinstance(op, arith.CmpiOp):
        return
    predicate, (left, right) = op.predicate.value.data, op.operands
    is_unsigned = predicate in _UNSIGNED
    predicate = _UNSIGNED.get(predicate, predicate)
    if not is_true:
        predicate = _NEGATED[predicate]
    if predicate in (4, 5):
        left, right, predicate = right, left, predicate - 2
    if predicate not in (2, 3):
        return
    small, large = value(left), value(right)
    if is_unsigned and (not is_true or not never_below(large, 0, active)):
        return
    gap = exactly(3 - predicate)
    if small.exact is None:
        yield left, intervals.cut(small, exactly(0).low if is_unsigned else None, intervals.subtract(large, gap).high)
    if large.exact is None:
        yield right, intervals.cut(large, intervals.add(small, gap).low, None)


RULES: Mapping[str, Rule] = {
    "arith.constant": _constant,
    "arith.addi": _plain(intervals.add),
    "arith.subi": _plain(intervals.subtract),
    "arith.muli": _plain(intervals.multiply),
    "arith.maxsi": _plain(intervals.largest),
    "arith.minsi": _plain(intervals.smallest),
    "arith.divui": _divided,
    "arith.divsi": _divided,
    "arith.floordivsi": _divided_down,
    "arith.ceildivsi": _divided_up,
    "arith.remui": _remainder,
    "arith.remsi": _remainder,
    "arith.select": _selected,
    "arith.cmpi": _compared,
    "arith.andi": _truth_of(intervals.both),
    "arith.ori": _truth_of(intervals.either),
    "arith.xori": _exclusive,
    "arith.shli": _shifted_left,
    "arith.shrui": _shifted_right,
    "arith.shrsi": _shifted_right,
    "arith.index_cast": _converted,
    "arith.extsi": _converted,
    "arith.trunci": _converted,
    "arith.extui": _zero_extended,
}
