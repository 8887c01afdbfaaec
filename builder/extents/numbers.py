"""Writes the straight-line program that computes the extents of a launch from its numbers (runtime/extents.py)."""

from __future__ import annotations

from collections.abc import Sequence

Instruction = tuple[str, int, int, int]
"""An operation and its operands: numbers of instructions, or what the operation says."""


MAX_NUMBER = 1 << 62
"""What no instruction's value reaches."""
OPERANDS = {"const": 1, "arg": 1, "grid": 1, "+": 2, "*": 2, "//": 2, "%": 2, "max": 2, "min": 2, "if": 3}


class Numbers:
    """Instructions, each made once; constants are computed at once."""

    def __init__(self) -> None:
        self.code: list[Instruction] = []
        self._known: dict[Instruction, int] = {}

    def constant(self, value: int) -> int:
        if abs(value) < MAX_NUMBER:
            return self._add("const", value)
        return self._add("*", self.constant(MAX_NUMBER - 1), self.constant(2))  # no launch that needs it is let through

    def argument(self, place: int) -> int:
        """The integer argument of the kernel at this place."""
        return self._add("arg", place)

    def grid(self, axis: int) -> int:
        """The number of blocks along an axis."""
        return self._add("grid", axis)

    def value(self, number: int) -> int | None:
        """The value of a constant."""
        operation, value, _, _ = self.code[number]
        return value if operation == "const" else None

    def add(self, left: int, right: int) -> int:
        a, b = self.value(left), self.value(right)
        if a == 0:
            return right
        if b == 0:
            return left
        return self._commutative("+", left, right, None if a is None or b is None else a + b)

    def multiply(self, left: int, right: int) -> int:
        a, b = self.value(left), self.value(right)
        if a == 1:
            return right
        if b == 1:
            return left
        if a == 0 or b == 0:
            return self.constant(0)
        return self._commutative("*", left, right, None if a is None or b is None else a * b)

    def _commutative(self, operation: str, left: int, right: int, value: int | None) -> int:
        if value is not None and abs(value) < MAX_NUMBER:
            return self.constant(value)
        return self._add(operation, *sorted((left, right)))

    def floor_divide(self, left: int, right: int) -> int:
        a, b = self.value(left), self.value(right)
        if b == 1:
            return left
        return self.constant(a // b) if a is not None and b else self._add("//", left, right)

    def remainder(self, left: int, right: int) -> int:
        a, b = self.value(left), self.value(right)
        return self.constant(a % b) if a is not None and b else self._add("%", left, right)

    def extreme(self, is_most: bool, given: Sequence[int]) -> int:
        """The largest or smallest of numbers."""
        pick = max if is_most else min
        values = [value for one in given if (value := self.value(one)) is not None]
        found = sorted({one for one in given if self.value(one) is None})
        if values:
            found.append(self.constant(pick(values)))
        best = found[0]
        for other in found[1:]:
            best = self._add("max" if is_most else "min", best, other)
        return best

    def choose(self, condition: int, yes: int, no: int) -> int:
        """`yes` where the condition is at least 0, else `no`."""
        known = self.value(condition)
        if known is not None or yes == no:
            return yes if known is None or known >= 0 else no
        return self._add("if", condition, yes, no)

    def _add(self, operation: str, a: int, b: int = 0, c: int = 0) -> int:
        instruction = (operation, a, b, c)
        if instruction not in self._known:
            self._known[instruction] = len(self.code)
            self.code.append(instruction)
        return self._known[instruction]
