"""The integers of a kernel as expressions of what the launch gives and of what varies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.builder.extents.integer_types import WORD, bits_of, is_integer, largest, range_of
from mlirt.builder.extents.numbers import MAX_NUMBER
from mlirt.builder.extents.polynomials import Polynomial
from mlirt.builder.extents.quotients import Quotients
from mlirt.builder.extents.thread_digits import thread_radices
from mlirt.builder.plan_writer.manifest import block_shape
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.simt import BlockIdOp, GridSizeOp, ThreadIdOp
from mlirt.dialects.kernel.warpgroup import WarpValueOp
from mlirt.dialects.kernel.worker import WorkerShareOp, WorkerSlotOp

ZERO, ONE = Polynomial.constant(0), Polynomial.constant(1)
_WARP = 32


class IndexValues(ABC):
    """The expressions of a kernel's integers."""

    def __init__(self, kernel: FuncOp) -> None:
        self.ranges = Quotients()
        self.values: dict[SSAValue, Polynomial] = {}
        self.threads = prod(block_shape(kernel))
        self._thread: Polynomial | None = None
        self._radices = thread_radices(kernel, self.threads)

    @abstractmethod
    def require(self, expression: Polynomial) -> None:
        """Note that an expression must be at least 0 for the rules that are used to hold."""

    def thread(self) -> Polynomial:
        """The number of a thread, as the sum of its digits."""
        if self._thread is None:
            self._thread = ZERO
            for radix, following in pairwise([*self._radices, self.threads]):
                digit = self.ranges.varying(ZERO, Polynomial.constant(following // radix - 1))
                self._thread += digit.scaled(radix)
        return self._thread

    def value(self, of: SSAValue) -> Polynomial:
        """The expression of an integer; an unknown one where nothing is known."""
        if of not in self.values:
            self.values[of] = self._anything(of.type)
        return self.values[of]

    def blocks(self, axis: int) -> Polynomial:
        """How many blocks a launch has along an axis."""
        return self.ranges.given(self.ranges.numbers.grid(axis), is_natural=True)

    def follow(self, op: Operation) -> bool:
        """Give the results of an op their expressions, where there is a rule for it."""
        rule = _RULES.get(op.name)
        if rule is not None:
            rule(self, op)
        return rule is not None

    def _anything(self, type_: Attribute) -> Polynomial:
        ends = range_of(type_)
        if ends is None:
            return self.ranges.varying(None, None)
        return self.ranges.varying(Polynomial.constant(ends[0]), Polynomial.constant(ends[1]))


_Combination: TypeAlias = Callable[[Polynomial, Polynomial], Polynomial]
_Rule: TypeAlias = Callable[[IndexValues, Operation], None]


def _ring(combine: _Combination) -> _Rule:
    def rule(values: IndexValues, op: Operation) -> None:
        if bits_of(op.results[0].type) >= WORD:  # narrower sums may wrap
            values.values[op.results[0]] = combine(values.value(op.operands[0]), values.value(op.operands[1]))

    return rule


def _extreme(is_most: bool) -> _Rule:
    def rule(values: IndexValues, op: Operation) -> None:
        given = [values.value(one) for one in op.operands]
        values.values[op.results[0]] = values.ranges.extreme(is_most, given)

    return rule


def _quotient(*, rounded_up: bool = False, is_natural: bool = False) -> _Rule:
    def rule(values: IndexValues, op: Operation) -> None:
        left, right = (values.value(one) for one in op.operands)
        if not _is_divided(values, left, right, is_natural=is_natural):
            return
        dividend = left + right.plus(-1) if rounded_up else left
        values.values[op.results[0]] = values.ranges.floor_quotient(dividend, right)

    return rule


def _remainder(values: IndexValues, op: Operation) -> None:
    left, right = (values.value(one) for one in op.operands)
    if _is_divided(values, left, right, is_natural=True):
        values.values[op.results[0]] = values.ranges.remainder(left, right)


def _is_divided(values: IndexValues, left: Polynomial, right: Polynomial, *, is_natural: bool) -> bool:
    """Whether the rules of division may be used; notes what they need. Data may be anything, and its quotients too.

    Clipped data has bounds, which may be negative as they stand: that is no mistake of a launch. Kernels on the CPU
    divide by 1 where they are told to divide by 0.
    """
    needed = [right if values.threads == 1 else right.plus(-1), *([left] if is_natural else [])]
    if not all(_may_be_natural(values, one) for one in needed):
        return False
    for one in needed:
        values.require(one)
    return True


def _may_be_natural(values: IndexValues, expression: Polynomial) -> bool:
    """Whether the least that an expression can be is known, and no negative constant."""
    least = values.ranges.least(expression, values.ranges.facts)
    return least is not None and (values.ranges.numbers.value(least) or 0) >= 0


def _select(values: IndexValues, op: Operation) -> None:
    from mlirt.builder.extents.comparisons import known_where

    assert isinstance(op, arith.SelectOp)
    if is_integer(op.result.type):
        yes, no = known_where(values, op.cond)
        values.values[op.result] = values.ranges.one_of([(values.value(op.lhs), yes), (values.value(op.rhs), no)])


def _constant(values: IndexValues, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    if isinstance(op.value, IntegerAttr) and abs(op.value.value.data) < MAX_NUMBER:
        values.values[op.result] = Polynomial.constant(op.value.value.data)


def _converted(values: IndexValues, op: Operation) -> None:
    (given,), (result,) = op.operands, op.results
    value, most = values.value(given), largest(result.type)
    if bits_of(result.type) < bits_of(given.type) and values.ranges.is_given(value):
        for fits in (value.scaled(-1).plus(most), value.plus(most + 1)):
            values.require(fits)
        values.values[result] = value
    elif bits_of(result.type) >= bits_of(given.type) > 1:
        values.values[result] = value


def _zero_extended(values: IndexValues, op: Operation) -> None:
    (given,), (result,) = op.operands, op.results
    least = values.ranges.least(values.value(given), values.ranges.facts)
    if least is not None and values.ranges.numbers.value(least) == 0:
        values.values[result] = values.value(given)


def _shared_work(values: IndexValues, op: Operation) -> None:
    assert isinstance(op, WorkerShareOp)
    # The first one is the newer unknown, so that what is known of it may be said in terms of the last.
    values.values[op.last] = values.ranges.varying(ZERO, values.value(op.tasks))
    values.values[op.first] = values.ranges.varying(ZERO, values.values[op.last])


def _slot(values: IndexValues, op: Operation) -> None:
    assert isinstance(op, WorkerSlotOp)
    last = values.value(op.slots).plus(-1)
    values.require(last)
    values.values[op.slot] = values.ranges.varying(ZERO, last)


def _thread(values: IndexValues, op: Operation) -> None:
    values.values[op.results[0]] = values.thread()


def _blocks(values: IndexValues, op: GridSizeOp | BlockIdOp) -> Polynomial:
    return values.blocks(op.axis.value.data)


def _of_the_warp(values: IndexValues, op: Operation) -> None:
    """The first thread's value is that of each thread where they have it alike."""
    if _is_of_the_warp(op.operands[0]):
        values.values[op.results[0]] = values.value(op.operands[0])


def _is_of_the_warp(value: SSAValue) -> bool:
    """Whether all threads of a warp have the same value: it follows from the number of the warp."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.results[0].type != value.type:
        return False
    if isinstance(owner, arith.ConstantOp | BlockIdOp | GridSizeOp | WarpValueOp):
        return True
    if owner.name in ("arith.divui", "arith.floordivsi") and _whole_warps(owner.operands[1]):
        dividend = owner.operands[0].owner
        if isinstance(dividend, ThreadIdOp):
            return True
        if isinstance(dividend, arith.AddiOp | arith.SubiOp) and _whole_warps(dividend.rhs):
            return isinstance(dividend.lhs.owner, ThreadIdOp)
    return owner.name in _RULES and bool(owner.operands) and all(map(_is_of_the_warp, owner.operands))


def _whole_warps(value: SSAValue) -> bool:
    owner = value.owner
    return (
        isinstance(owner, arith.ConstantOp)
        and isinstance(owner.value, IntegerAttr)
        and owner.value.value.data > 0
        and owner.value.value.data % _WARP == 0
    )


def _grid_size(values: IndexValues, op: Operation) -> None:
    assert isinstance(op, GridSizeOp)
    values.values[op.result] = _blocks(values, op)


def _block(values: IndexValues, op: Operation) -> None:
    assert isinstance(op, BlockIdOp)
    values.values[op.result] = values.ranges.varying(ZERO, _blocks(values, op).plus(-1))


_RULES: dict[str, _Rule] = {
    "arith.constant": _constant,
    "arith.addi": _ring(lambda a, b: a + b),
    "arith.subi": _ring(lambda a, b: a - b),
    "arith.muli": _ring(lambda a, b: a * b),
    "arith.maxsi": _extreme(True),
    "arith.minsi": _extreme(False),
    "arith.divui": _quotient(is_natural=True),
    "arith.divsi": _quotient(is_natural=True),
    "arith.floordivsi": _quotient(),
    "arith.ceildivsi": _quotient(rounded_up=True),
    "arith.remui": _remainder,
    "arith.remsi": _remainder,
    "arith.select": _select,
    "arith.index_cast": _converted,
    "arith.extsi": _converted,
    "arith.extui": _zero_extended,
    WorkerShareOp.name: _shared_work,
    WorkerSlotOp.name: _slot,
    ThreadIdOp.name: _thread,
    WarpValueOp.name: _of_the_warp,
    GridSizeOp.name: _grid_size,
    BlockIdOp.name: _block,
}
