"""The contracts that each launch of a plan may keep, by the numbers of one table."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.runtime.contract_table import ContractTable, NotTabledError, Terms
from mlirt.runtime.expressions import Expression
from mlirt.runtime.extents import Contract
from mlirt.runtime.formula_table import FormulaTable
from mlirt.runtime.manifest import IntArgument, Launch, Manifest


class LaunchContracts:
    """For each launch what it may touch; None for launches that are as the compiler has written them."""

    def __init__(self, manifest: Manifest, formulas: FormulaTable, *, has_grids: bool = False) -> None:
        self.table = ContractTable()
        self._formulas = formulas
        known: dict[tuple[object, ...], Sequence[Terms]] = {}
        self.of_launches: list[Sequence[Terms] | None] = []
        for number, launch in enumerate(manifest.launches):
            contracts = manifest.contracts.get(manifest.kernels[launch.kernel].symbol, ())
            if number in manifest.sealed or not contracts or any(one.unproved for one in contracts):
                self.of_launches.append(None)
                continue
            grid = launch.grid if has_grids else (1, 1, 1)
            key = (launch.kernel, grid, *(one.value for one in launch.args if isinstance(one, IntArgument)))
            if key not in known:
                known[key] = self._terms(contracts, launch, grid)
            self.of_launches.append(known[key])

    def _terms(self, contracts: Sequence[Contract], launch: Launch, grid: Sequence[Expression]) -> Sequence[Terms]:
        """Those that hold for some shapes."""
        integers = {i: one.value for i, one in enumerate(launch.args) if isinstance(one, IntArgument)}
        is_fixed = all(isinstance(value, int) for value in (*integers.values(), *grid))
        found: list[Terms] = []
        for contract in contracts:
            try:
                if is_fixed:
                    fixed = self._fixed(contract, [integers.get(i, 0) for i in range(len(launch.args))], grid)
                    found += [] if fixed is None else [fixed]
                else:
                    given = {i: self._number(value) for i, value in integers.items()}
                    found.append(self.table.terms(contract, given, [self._number(size) for size in grid]))
            except NotTabledError:
                continue
        return found

    def _number(self, value: object) -> int:
        if isinstance(value, int):
            return self.table.constant(value)
        return self.table.formula(self._formulas.add(value))  # pyright: ignore[reportArgumentType]

    def _fixed(self, contract: Contract, given: Sequence[object], grid: Sequence[Expression]) -> Terms | None:
        """What a launch without symbols touches; None where it does not keep the contract."""
        extents = contract.extents_of(given, [size for size in grid if isinstance(size, int)])
        return None if isinstance(extents, str) else self.table.touching(extents)
