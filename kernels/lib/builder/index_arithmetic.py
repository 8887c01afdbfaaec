"""Arithmetic on `index` values in kernels; what is trivial leaves no op."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.fused.scalar_builder import integer_type
from mlirt.kernels.lib.builder.run_values import Value, value_of


class IndexArithmetic(ABC):
    """Methods take and give `index` values, comparisons give `i1`; plain ints are constants."""

    @abstractmethod
    def value(self, op: Operation) -> Value:
        """Append an op and return its result."""

    @abstractmethod
    def constant(self, value: float, type_: Attribute = IndexType()) -> Value:
        """A number that is part of the code."""

    def index(self, value: SSAValue | int) -> Value:
        return self.constant(value) if isinstance(value, int) else value_of(value)

    def add(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        if known(a) == 0:
            return self.index(b)
        return self.index(a) if known(b) == 0 else self._folded(arith.AddiOp, a, b)

    def sub(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        return self.index(a) if known(b) == 0 else self._folded(arith.SubiOp, a, b)

    def mul(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        if known(a) == 1:
            return self.index(b)
        return self.index(a) if known(b) == 1 else self._folded(arith.MuliOp, a, b)

    def div(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        """The quotient of numbers that are not negative."""
        return self.index(a) if known(b) == 1 else self._folded(arith.DivUIOp, a, b)

    def rem(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        """The remainder of numbers that are not negative."""
        return self.constant(0) if known(b) == 1 else self._folded(arith.RemUIOp, a, b)

    def floor_div(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        """The quotient rounded down, for a positive divisor."""
        return self.index(a) if known(b) == 1 else self._folded(arith.FloorDivSIOp, a, b)

    def ceil_div(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        """The quotient rounded up, for a positive divisor."""
        return self.index(a) if known(b) == 1 else self._folded(arith.CeilDivSIOp, a, b)

    def max(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        return self._folded(arith.MaxSIOp, a, b)

    def min(self, a: SSAValue | int, b: SSAValue | int) -> Value:
        return self._folded(arith.MinSIOp, a, b)

    def compare(self, predicate: str, a: SSAValue | int, b: SSAValue | int) -> Value:
        """`eq`, `ne`, `slt`, `sle`, `sgt`, `sge`, `ult`, .. as an i1."""
        left, right = known(a), known(b)
        if left is not None and right is not None and min(left, right) >= 0:
            return self.constant(int(_COMPARISONS[predicate.lstrip("su")](left, right)), i1)
        return self.value(arith.CmpiOp(self.index(a), self.index(b), predicate))

    def both(self, a: SSAValue | bool | None, b: SSAValue | bool | None) -> Value | None:
        """The conjunction of conditions; None is always true, as `True` is for kernel functions."""
        first, second = (None if one is True else one for one in (a, b))
        if first is None or known(first):
            return None if second is None else value_of(second)
        if second is None or known(second):
            return value_of(first)
        assert not isinstance(first, bool)
        assert not isinstance(second, bool)
        return self.value(arith.AndIOp(first, second))

    def select(self, condition: SSAValue, a: SSAValue | int, b: SSAValue | int) -> Value:
        holds = known(condition)
        if holds is not None:
            return self.index(a if holds else b)
        return self.value(arith.SelectOp(condition, self.index(a), self.index(b)))

    def clamp(self, position: SSAValue, length: SSAValue | int) -> Value:
        """The nearest position in `range(length)`."""
        return self.max(self.min(position, self.sub(length, 1)), 0)

    def split(self, number: SSAValue, extents: Sequence[SSAValue]) -> list[Value]:
        """The indices of a row-major number in a box."""
        indices, rest = list[Value](), value_of(number)
        for extent in reversed(extents[1:]):
            indices.append(self.rem(rest, extent))
            rest = self.div(rest, extent)
        return [rest, *reversed(indices)] if extents else []

    def to_integer(self, position: SSAValue, type_: Attribute) -> Value:
        """An index as an integer of a given type."""
        signless = IntegerType(integer_type(type_).width.data)
        result = self.value(arith.IndexCastOp(position, signless))
        return result if signless == type_ else self.value(arith.BitcastOp(result, type_))

    def from_integer(self, number: SSAValue) -> Value:
        """A signed integer as an index."""
        return self.value(arith.IndexCastOp(number, IndexType()))

    def _folded(self, op: type[arith.SignlessIntegerBinaryOperation], a: SSAValue | int, b: SSAValue | int) -> Value:
        left, right = known(a), known(b)
        if left is not None and right is not None:
            return self.constant(_FOLDS[op.name](left, right))
        return self.value(op(self.index(a), self.index(b)))


_FOLDS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.maxsi": lambda a, b: max(a, b),
    "arith.minsi": lambda a, b: min(a, b),
}


# Of numbers that are not negative, for which `s` and `u` are the same.
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def known(value: SSAValue | int) -> int | None:
    """The number that an index value is known to be; of an i1, 0 where it does not hold."""
    if isinstance(value, int):
        return value
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return cast("IntegerAttr[IndexType]", owner.value).value.data
    return None
