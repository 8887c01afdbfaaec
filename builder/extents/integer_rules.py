"""What ops on integers make of intervals (`intervals.py`), by name; where there is no rule, anything of the type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from mlirt.builder.extents.intervals import (
    ANY,
    Ends,
    Interval,
    Mask,
    add,
    between,
    both,
    choose,
    either,
    equal,
    exactly,
    floor_divide,
    largest,
    less,
    multiply,
    never_below,
    opposite,
    remainder,
    smallest,
    subtract,
)

Rule: TypeAlias = "Callable[[Operation, Sequence[Interval], Mask], Interval]"

_MAX_SHIFT = 40
_UNKNOWN_TRUTH = between(0, 1)


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
    return floor_divide(left, right, active) if never_below(left, 0, active) else ANY


def _divided_down(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return floor_divide(left, right, active)


def _left(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return remainder(left, right, active)


def _divided_up(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return floor_divide(add(left, subtract(right, exactly(1))), right, active)


def _selected(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    condition, yes, no = given
    return choose(condition, yes, no, active)


def _truth_of(combine: Callable[[Interval, Interval], Interval]) -> Rule:
    return lambda op, given, active: combine(*given) if _is_truth(op) else ANY


def _exclusive(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    if not _is_truth(op):
        return ANY
    left, right = given
    return either(both(left, opposite(right)), both(opposite(left), right))


def _power_of_2(exponents: Interval) -> Interval | None:
    known = exponents.exact
    is_small = known is not None and not ((known < 0) | (known > _MAX_SHIFT)).any()
    return exactly(1 << known) if known is not None and is_small else None


def _shifted_left(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return ANY if (power := _power_of_2(right)) is None else multiply(left, power)


def _shifted_right(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    left, right = given
    return ANY if (power := _power_of_2(right)) is None else _divided(op, [left, power], active)


def _converted(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    """What does not fit into the type of the result is left to whoever sets it."""
    (source,) = given
    return ANY if op.name == "arith.extsi" and _bits(op.operands[0].type) == 1 else source


def _zero_extended(op: Operation, given: Sequence[Interval], active: Mask) -> Interval:
    (source,) = given
    return source if never_below(source, 0, active) else ANY


_COMPARED: Mapping[int, Callable[[Interval, Interval], Interval]] = {
    0: equal,
    1: lambda a, b: opposite(equal(a, b)),
    2: less,
    3: lambda a, b: less(a, b, or_equal=True),
    4: lambda a, b: less(b, a),
    5: lambda a, b: less(b, a, or_equal=True),
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
    is_natural = less(exactly(0), left, or_equal=True) if left.low is not None else _UNKNOWN_TRUTH
    return both(is_natural, _COMPARED[signed](left, right))


def _is_truth(op: Operation) -> bool:
    return _bits(op.results[0].type) == 1


def _bits(type_: object) -> int:
    return type_.bitwidth if isinstance(type_, IntegerType) else 64


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
        low = _higher(small.low, np.zeros((1, 1), np.int64)) if is_unsigned else small.low
        yield left, Interval(low, _lower(small.high, subtract(large, gap).high))
    if large.exact is None:
        yield right, Interval(_higher(large.low, add(small, gap).low), large.high)


def _lower(a: Ends | None, b: Ends | None) -> Ends | None:
    return b if a is None else a if b is None else np.minimum(a, b)


def _higher(a: Ends | None, b: Ends | None) -> Ends | None:
    return b if a is None else a if b is None else np.maximum(a, b)


RULES: Mapping[str, Rule] = {
    "arith.constant": _constant,
    "arith.addi": _plain(add),
    "arith.subi": _plain(subtract),
    "arith.muli": _plain(multiply),
    "arith.maxsi": _plain(largest),
    "arith.minsi": _plain(smallest),
    "arith.divui": _divided,
    "arith.divsi": _divided,
    "arith.floordivsi": _divided_down,
    "arith.ceildivsi": _divided_up,
    "arith.remui": _left,
    "arith.remsi": _left,
    "arith.select": _selected,
    "arith.cmpi": _compared,
    "arith.andi": _truth_of(both),
    "arith.ori": _truth_of(either),
    "arith.xori": _exclusive,
    "arith.shli": _shifted_left,
    "arith.shrui": _shifted_right,
    "arith.shrsi": _shifted_right,
    "arith.index_cast": _converted,
    "arith.extsi": _converted,
    "arith.trunci": _converted,
    "arith.extui": _zero_extended,
}
