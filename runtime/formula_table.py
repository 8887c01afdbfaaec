"""All formulas of a plan, taken apart into distinct operations: for one set of symbol values each is computed once."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from mlirt.runtime.expressions import LIMIT, OPERATORS, Expression, ExpressionError, evaluate

MAX_BYTES = 1 << 46
"""The most bytes of a buffer, and the largest size, length or offset."""


class FormulaTable:
    """Formulas by number, in an order in which operands come before what is computed from them."""

    def __init__(self) -> None:
        self._numbers: dict[Expression, int] = {}
        self._constants: list[int] = []
        self._symbols: list[tuple[int, str]] = []
        self._code: list[tuple[int, Callable[[int, int], int], int, int]] = []

    def add(self, formula: Expression) -> int:
        """The number of a formula; one that is there already has it again."""
        number = self._numbers.get(formula)
        if number is not None:
            return number
        if isinstance(formula, tuple):
            operator, left, right = formula
            operands = self.add(left), self.add(right)
            number = len(self._constants)
            self._code.append((number, OPERATORS[operator], *operands))
        else:
            number = len(self._constants)
            if isinstance(formula, str):
                self._symbols.append((number, formula))
        self._constants.append(formula if isinstance(formula, int) else 0)
        self._numbers[formula] = number
        return number

    def number_of(self, formula: Expression) -> int | None:
        """The number of a formula that was added; None for another."""
        return self._numbers.get(formula)

    @property
    def formulas(self) -> Mapping[Expression, int]:
        """All formulas and their numbers, operands before what is computed from them."""
        return self._numbers

    def evaluated(self, values: Mapping[str, int]) -> "EvaluatedFormulas":
        """All formulas where each symbol has its value of `values`."""
        results, failed = self._constants.copy(), set[int]()
        for number, symbol in self._symbols:
            results[number] = values[symbol]
        for number, operator, left, right in self._code:
            try:
                result = operator(results[left], results[right])
            except ExpressionError:
                failed.add(number)
                continue
            if -LIMIT <= result <= LIMIT:
                results[number] = result
            else:
                failed.add(number)
        if failed:
            for number, _, left, right in self._code:
                if left in failed or right in failed:
                    failed.add(number)
        return EvaluatedFormulas(self, values, results, failed)


class EvaluatedFormulas:
    """The values of all formulas of a table."""

    def __init__(self, table: FormulaTable, values: Mapping[str, int], results: list[int], failed: set[int]) -> None:
        self.values = values
        self.results = results
        self._table, self._failed = table, failed

    @property
    def is_whole(self) -> bool:
        """Whether every formula has a value."""
        return not self._failed

    def array(self) -> np.ndarray:
        """The values by the numbers of the formulas, of type int64; those of formulas without a value are 0."""
        found = np.array(self.results, np.int64)
        found[list(self._failed)] = 0
        return found

    def numbered(self, formulas: Iterable[int]) -> list[int]:
        """The values of formulas by their numbers; raises ExpressionError where one has none."""
        numbers = list(formulas)
        if not self._failed.isdisjoint(numbers):
            raise ExpressionError("a formula has no value")
        return [self.results[number] for number in numbers]

    def of(self, formula: Expression) -> int:
        """The value of a formula; raises ExpressionError where it has none."""
        number = self._table.number_of(formula)
        if number is None or number in self._failed:
            return evaluate(formula, self.values)
        return self.results[number]

    def natural(self, formula: Expression, what: str) -> int:
        """The value of a formula that is a size; raises ExpressionError, which says what it is, for another number."""
        value = self.of(formula)
        if not 0 <= value <= MAX_BYTES:
            raise ExpressionError(f"{what} is {value}")
        return value
