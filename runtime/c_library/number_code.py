"""All numbers of a plan in one array: formulas of its lengths, and what its kernels touch, with the code for them."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.runtime.contract_table import ContractTable
from mlirt.runtime.formula_table import FormulaTable

_FORMULAS = {
    "+": "ADD",
    "-": "SUBTRACT",
    "*": "MULTIPLY",
    "//": "DIVIDE",
    "%": "MODULO",
    "max": "MAXIMUM",
    "min": "MINIMUM",
    "broadcast": "BROADCAST",
}
_CONTRACTS = {
    "+": "ADD",
    "*": "MULTIPLY",
    "//": "DIVIDE_BY_ANY",
    "%": "MODULO_ANY",
    "max": "MAXIMUM",
    "min": "MINIMUM",
    "if": "IF",
}

Instruction = tuple[str, int, int, int, int]
"""An operation, the number that it gives, and its operands."""


class NumberCode:
    """The values of all numbers at first, and the instructions that compute the others."""

    def __init__(self, formulas: FormulaTable, contracts: ContractTable) -> None:
        self.initial: list[int] = []
        self.code: list[Instruction] = []
        self.of_symbols: dict[str, int] = {}
        """The number of each symbol."""
        self._add_formulas(formulas)
        self.of_contracts = self._add_contracts(contracts.entries)
        """The numbers of a table of contracts, by their numbers there."""
        self._words: dict[int, int] = {}

    def _add_formulas(self, formulas: FormulaTable) -> None:
        table = formulas.formulas
        for formula, number in table.items():
            assert number == len(self.initial)
            self.initial.append(formula if isinstance(formula, int) else 0)
            if isinstance(formula, str):
                self.of_symbols[formula] = number
            elif isinstance(formula, tuple):
                operator, left, right = formula
                self.code.append((_FORMULAS[operator], number, table[left], table[right], 0))

    def _add_contracts(self, entries: Mapping[tuple[str, int, int, int], int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for (operation, a, b, c), number in entries.items():
            if number in found:
                continue  # what an operation was simplified to
            if operation == "formula":
                found[number] = a
                continue
            found[number] = len(self.initial)
            self.initial.append(a if operation == "const" else 0)
            if operation != "const":
                third = found[c] if operation == "if" else 0
                self.code.append((_CONTRACTS[operation], found[number], found[a], found[b], third))
        return found

    def word(self, bits: int) -> int:
        """The number of a constant of any 64 bits, which nothing computes with."""
        if bits not in self._words:
            self._words[bits] = len(self.initial)
            self.initial.append(bits)
        return self._words[bits]
