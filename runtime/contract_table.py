"""What launches may touch as one table of whole-number operations over the formulas of a plan.

A contract computes with the integers of a launch, and these are formulas. Equal operations are one in the table,
whichever kernels and launches they belong to; one without symbols is a constant, computed when a plan is loaded.
An operation is an entry of a closed set, which `evaluated` interprets: nothing of a plan becomes code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mlirt.runtime.extents import MAX_NUMBER, Contract, Extent

_MAX_BITS = 62 * 32
"""No number has more before all are compared with `MAX_NUMBER`; a contract that could go beyond is left out."""
_SYMMETRIC = frozenset(("+", "*", "min", "max"))


class NotTabledError(ValueError):
    """A contract has no place in the table: it holds for no shapes, or its numbers may become very large."""


class Touched(NamedTuple):
    """Elements `low` to `high` of the argument `place`, of `width` bytes each; none where `guard` is less than 0."""

    place: int
    width: int
    low: int
    high: int
    guard: int


class Terms(NamedTuple):
    """A contract by the numbers of a table."""

    natural: frozenset[int]
    """The numbers that must not be less than 0."""
    touched: tuple[Touched, ...]


class ContractTable:
    """Numbers, each of which is a constant, a formula of the plan, or an operation on numbers before it."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int, int, int], int] = {}
        self._values: list[int] = []
        self._is_constant: list[bool] = []
        self._bits: list[int] = []
        self._formulas: list[tuple[int, int]] = []
        self._code: list[tuple[int, str, int, int, int]] = []
        self.naught = self.constant(0)

    def __len__(self) -> int:
        """The operations that `evaluated` makes."""
        return len(self._code)

    @property
    def entries(self) -> Mapping[tuple[str, int, int, int], int]:
        """The numbers by ("const", value, 0, 0), ("formula", its number, 0, 0) or operation and operands, in order."""
        return self._numbers

    def touching(self, extents: Mapping[int, tuple[int, int]]) -> Terms:
        """What a launch touches whose bytes are known: by the place of each argument where they begin and end."""
        found = (
            Touched(place, 1, self.constant(start), self.constant(end - 1), self.naught)
            for place, (start, end) in extents.items()
            if start < end
        )
        return Terms(frozenset(), tuple(found))

    def constant(self, value: int) -> int:
        """The number that has this value; NotTabledError where it has more than 62 bits."""
        found = self._numbers.get(("const", value, 0, 0))
        if found is None:
            if not -MAX_NUMBER < value < MAX_NUMBER:
                raise NotTabledError("a constant is too large")
            found = self._numbers["const", value, 0, 0] = self._added(value, bits=62)
        return found

    def formula(self, number: int) -> int:
        """The number that has the value of a formula of the plan, by its number there."""
        found = self._numbers.get(("formula", number, 0, 0))
        if found is None:
            found = self._numbers["formula", number, 0, 0] = self._added(None, bits=62)
            self._formulas.append((found, number))
        return found

    def value_of(self, number: int) -> int | None:
        """The value of a constant; None for other numbers."""
        return self._values[number] if self._is_constant[number] else None

    def apply(self, operation: str, a: int, b: int, c: int = 0) -> int:
        """The number that an instruction of a contract gives; NotTabledError where it may be very large."""
        if a > b and operation in _SYMMETRIC:
            a, b = b, a
        key = operation, a, b, c
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._applied(operation, a, b, c)
        return found

    def _applied(self, operation: str, a: int, b: int, c: int) -> int:
        is_constant, values, bits = self._is_constant, self._values, self._bits
        if is_constant[a] and is_constant[b] and (operation != "if" or is_constant[c]):
            return self.constant(_computed(operation, values[a], values[b], values[c]))
        if is_constant[a] or is_constant[b] or a == b or b == c:
            same = self._simplified(operation, a, b, c)
            if same is not None:
                return same
        if operation == "*":
            most = bits[a] + bits[b]
        else:
            most = max(bits[a], bits[b], bits[c] if operation == "if" else 0) + (operation == "+")
        if most > _MAX_BITS:
            raise NotTabledError("its numbers may become very large")
        number = self._added(None, most)
        self._code.append((number, operation, a, b, c))
        return number

    def _simplified(self, operation: str, a: int, b: int, c: int) -> int | None:
        """The operand that the result is equal to; None where it is none of them."""
        left, right = self.value_of(a), self.value_of(b)
        if operation == "+" and 0 in (left, right):
            return b if left == 0 else a
        if operation == "*" and 1 in (left, right):
            return b if left == 1 else a
        if operation == "//" and right in (0, 1):
            return a
        if operation == "if" and (b == c or left is not None):
            return b if left is None or left >= 0 else c
        return a if operation in ("min", "max") and a == b else None

    def _added(self, value: int | None, bits: int) -> int:
        self._values.append(value or 0)
        self._is_constant.append(value is not None)
        self._bits.append(bits)
        return len(self._values) - 1

    def terms(self, contract: Contract, given: Mapping[int, int], grid: Sequence[int] = ()) -> Terms:
        """What a contract says of launches whose integer arguments are the numbers `given`, by place, and whose grid is
        `grid`, or 1 without it.

        NotTabledError where it holds for none of them, or its numbers may become very large; nothing is added then.
        """
        values, code, formulas = len(self._values), len(self._code), len(self._formulas)
        try:
            return self._terms(contract, given, grid)
        except NotTabledError:
            del self._code[code:], self._formulas[formulas:]
            del self._values[values:], self._is_constant[values:], self._bits[values:]
            self._numbers = {key: number for key, number in self._numbers.items() if number < values}
            raise

    def _terms(self, contract: Contract, given: Mapping[int, int], grid: Sequence[int]) -> Terms:
        natural = [
            number
            for place, number in given.items()
            if place not in contract.signed and place not in contract.constants
        ]
        for place, value in contract.constants.items():
            low = self.apply("+", given[place], self.constant(-value))
            natural += [low, self.apply("*", low, self.constant(-1))]
        numbers = self._instructions(contract, given, grid)
        for number, *guards in contract.conditions:
            natural.append(self.apply("if", self._guard(numbers, guards), numbers[number], self.naught))
        touched: list[Touched] = []
        for extent in contract.extents:
            guard, low, high = self._guard(numbers, extent.guards), numbers[extent.low], numbers[extent.high]
            if extent.place is None:
                natural += self._own_memory(extent, guard, low, high)
            else:
                touched.append(Touched(extent.place, extent.width, low, high, guard))
        values = {number: self.value_of(number) for number in natural}
        if any(value is not None and value < 0 for value in values.values()):
            raise NotTabledError("it holds for no shapes")
        return Terms(frozenset(number for number, value in values.items() if value is None), tuple(touched))

    def _instructions(self, contract: Contract, given: Mapping[int, int], grid: Sequence[int]) -> list[int]:
        numbers: list[int] = []
        for operation, a, b, c in contract.numbers:
            if operation == "const":
                number = self.constant(a)
            elif operation == "arg":
                number = given[a]
            elif operation == "grid":
                number = grid[a] if grid else self.constant(1)
            else:
                number = self.apply(operation, numbers[a], numbers[b], numbers[c] if operation == "if" else 0)
            numbers.append(number)
        return numbers

    def _guard(self, numbers: Sequence[int], guards: Sequence[int]) -> int:
        """A number that is less than 0 where one of the guards is."""
        found = self.naught
        for guard in guards:
            value = self.value_of(numbers[guard])
            if value is None or value < 0:
                found = numbers[guard] if found == self.naught else self.apply("min", found, numbers[guard])
        return found

    def _own_memory(self, extent: Extent, guard: int, low: int, high: int) -> list[int]:
        """What must not be less than 0 for an extent to lie in the kernel's own memory."""
        length = self.apply("+", high, self.apply("*", low, self.constant(-1)))
        is_used = self.apply("min", guard, length)
        used = self.apply("*", high, self.constant(-extent.width))
        left = self.apply("+", used, self.constant(extent.bytes - extent.width))
        first = self.apply("*", low, self.constant(extent.width))
        return [self.apply("if", is_used, one, self.naught) for one in (first, left)]

    def evaluated(self, formulas: Sequence[int]) -> np.ndarray | None:
        """The values of all numbers by those of the plan's formulas; None where one has more than 62 bits."""
        values = self._values.copy()
        for number, formula in self._formulas:
            values[number] = formulas[formula]
        for number, operation, a, b, c in self._code:  # the most frequent ones first
            if operation == "+":
                values[number] = values[a] + values[b]
            elif operation == "*":
                values[number] = values[a] * values[b]
            elif operation == "min":
                left, right = values[a], values[b]
                values[number] = left if left < right else right
            else:
                values[number] = _computed(operation, values[a], values[b], values[c])
        try:
            found = np.array(values, np.int64)
        except OverflowError:
            return None
        return found if -MAX_NUMBER < int(found.min()) and int(found.max()) < MAX_NUMBER else None


def _computed(operation: str, a: int, b: int, c: int) -> int:
    if operation == "//":
        return a // (b or 1)
    if operation == "%":
        return a % (b or 1)
    if operation == "max":
        return max(a, b)
    if operation == "if":
        return b if a >= 0 else c
    if operation == "+":
        return a + b
    return a * b if operation == "*" else min(a, b)
