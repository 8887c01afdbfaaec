"""Instructions on numbers for `mlirt_lengths` (builder/spmd_code/lengths.py): all that follows from lengths at once.

An instruction is an entry of a closed set, which native code interprets: nothing of a plan becomes code. What depends
on no length is computed when the instructions are made.
"""

from __future__ import annotations

import numpy as np

from mlirt.runtime.expressions import LIMIT, OPERATORS, ExpressionError

_OPERATIONS = {"+": 0, "-": 1, "*": 2, "//": 3, "%": 4, "max": 5, "min": 6, "broadcast": 7, "if": 8}
_NATURAL, _EQUAL, _WORD = 9, 10, 11
_MAX_NUMBERS = 1 << 30


class UnfitError(ValueError):
    """What would be computed has no value, or does not hold, whatever the lengths are."""


class LengthCode:
    """Numbers, and the instructions that compute them, check them, and write parameters, in this order."""

    def __init__(self) -> None:
        self._values: list[int] = []
        self._is_open: list[bool] = []
        self._causes: list[int] = []
        self._numbers: dict[tuple[str, int, int, int], int] = {}
        self._computed: list[tuple[int, ...]] = []
        self._checked: dict[tuple[int, int, int], None] = {}
        self._words: list[tuple[int, ...]] = []
        self.naught = self.constant(0)

    def __len__(self) -> int:
        """How many instructions there are."""
        return len(self._computed) + len(self._checked) + len(self._words)

    def constant(self, value: int) -> int:
        """The number that has this value."""
        return self._known(("const", value, 0, 0), value)

    def open(self, count: int, first_cause: int | None = None) -> list[int]:
        """Numbers in a row that are written before each run, such as lengths.

        These are the causes `first_cause` and so on, which other numbers follow from.
        """
        causes = [0 if first_cause is None else 1 << first_cause + k for k in range(count)]
        return [self._added(0, is_open=True, causes=one) for one in causes]

    def value_of(self, number: int) -> int | None:
        """The value of a number that follows from no length; None for others."""
        return None if self._is_open[number] else self._values[number]

    def apply(self, operation: str, a: int, b: int, c: int = 0) -> int:
        """The number that an operation gives, one of a formula or "if" (`b` where `a` is at least 0, else `c`)."""
        key = operation, a, b, c
        found = self._numbers.get(key)
        if found is not None:
            return found
        if not (self._is_open[a] or self._is_open[b] or (operation == "if" and self._is_open[c])):
            return self._known(key, self._folded(operation, a, b, c))
        same = self._simplified(operation, a, b, c)
        if same is not None:
            return same
        causes = self._causes[a] | self._causes[b] | (self._causes[c] if operation == "if" else 0)
        found = self._numbers[key] = self._added(0, is_open=True, causes=causes)
        self._computed.append((_OPERATIONS[operation], found, a, b, c))
        return found

    def _simplified(self, operation: str, a: int, b: int, c: int) -> int | None:
        """The operand that the result is equal to; None where it is none of them."""
        left, right = self.value_of(a), self.value_of(b)
        if operation == "+" and 0 in (left, right):
            return b if left == 0 else a
        if operation == "*" and 1 in (left, right):
            return b if left == 1 else a
        if (operation == "-" and right == 0) or (operation == "//" and right == 1):
            return a
        if operation == "if" and left is not None:
            return b if left >= 0 else c
        return None

    def _folded(self, operation: str, a: int, b: int, c: int) -> int:
        left, right = self._values[a], self._values[b]
        if operation == "if":
            return right if left >= 0 else self._values[c]
        try:
            return OPERATORS[operation](left, right)
        except ExpressionError as error:
            raise UnfitError(str(error)) from error

    def scaled(self, number: int, factor: int) -> int:
        """A number times a constant."""
        return self.apply("*", number, self.constant(factor))

    def natural(self, number: int) -> None:
        """Let a run go on only where a number is not less than 0."""
        value = self.value_of(number)
        if value is None:
            self._checked[_NATURAL, number, 0] = None
        elif value < 0:
            raise UnfitError("a number is less than 0")

    def at_most(self, number: int, most: int) -> None:
        """Let a run go on only where a number is not greater than another one."""
        self.natural(self.apply("-", most, number))

    def equal(self, a: int, b: int) -> None:
        """Let a run go on only where two numbers are equal."""
        left, right = self.value_of(a), self.value_of(b)
        if a == b or (left is not None and left == right):
            return
        if left is not None and right is not None:
            raise UnfitError("two numbers differ")
        self._checked[_EQUAL, a, b] = None

    def word(self, place: int, a: int, b: int | None = None) -> None:
        """Write a number, or the sum of two, as the parameter with the number `place`."""
        self._words.append((_WORD, place, a, self.naught if b is None else b, 0))

    def instructions(self) -> np.ndarray:
        """All instructions, for native code."""
        checked = [(kind, 0, a, b, 0) for kind, a, b in self._checked]
        rows = [*self._computed, *checked, *self._words]
        return np.array(rows, np.int32).reshape(len(rows), 5)

    def causes(self) -> list[int]:
        """For each instruction the causes that its operands follow from, as bits."""
        rows = self.instructions()[:, 2:].tolist()
        return [self._causes[a] | self._causes[b] | self._causes[c] for a, b, c in rows]

    def numbers(self) -> np.ndarray:
        """The values of all numbers, those that are open as 0."""
        return np.array(self._values, np.int64)

    def _known(self, key: tuple[str, int, int, int], value: int) -> int:
        found = self._numbers.get(key)
        if found is None:
            if not -LIMIT <= value <= LIMIT:
                raise UnfitError("a number is too large")
            found = self._numbers[key] = self._added(value, is_open=False)
        return found

    def _added(self, value: int, *, is_open: bool, causes: int = 0) -> int:
        if len(self._values) >= _MAX_NUMBERS:
            raise UnfitError("there are too many numbers")
        self._values.append(value)
        self._is_open.append(is_open)
        self._causes.append(causes)
        return len(self._values) - 1
