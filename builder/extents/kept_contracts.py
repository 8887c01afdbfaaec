"""Contracts of kernels that have been read before, in this build or in an earlier one: finding bounds takes seconds.

What a contract says follows from the kernel's text, from what is known of the numbers that launches pass, from how long
bounds are looked for, and from this package: that is the key. Entries lie in the kernel cache, beside the code that
they are about, and are trusted as that is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from io import StringIO
from typing import cast

from mlirt.builder.build_keys import own_sources
from mlirt.builder.extents.contract import Record, contract_from
from mlirt.builder.extents.kernel_reader import FULL_EFFORT, NOTHING_KNOWN, KernelReader
from mlirt.builder.extents.launch_reader import MAX_WORK, LaunchReader, TooMuchWork
from mlirt.builder.extents.ranges import Effort
from mlirt.builder.kernel_cache import KernelCache, key_of, versions
from mlirt.dialects.ir_printer import IrPrinter
from mlirt.dialects.kernel.core import FuncOp

Found = tuple[Record, bool]


class KeptContracts:
    """The contracts of one build's kernels, and those of earlier builds."""

    def __init__(self, cache: KernelCache | None = None) -> None:
        self._cache = KernelCache() if cache is None else cache
        self._texts: dict[FuncOp, str] = {}
        self._found: dict[str, Found] = {}
        self.read = 0
        """How many kernels have been read so far for want of a contract."""

    def of(
        self,
        kernel: FuncOp,
        signed: Collection[int],
        constants: Mapping[int, int],
        grid: Mapping[int, int] = NOTHING_KNOWN,
        effort: Effort = FULL_EFFORT,
    ) -> Found:
        """A contract, and whether its bounds may be wider than they would be with more effort."""
        numbers = sorted(signed), sorted(constants.items()), sorted(grid.items()), effort.bound, effort.kernel
        key = key_of("contract", own_sources(), versions("xdsl"), self._text(kernel), json.dumps(numbers))
        if key not in self._found:
            kept = self._cache.get(key, _is_contract)
            self._found[key] = self._new(key, kernel, signed, constants, grid, effort) if kept is None else _read(kept)
        return self._found[key]

    def of_launch(
        self, kernel: FuncOp, constants: Mapping[int, int], grid: Mapping[int, int], most: int = MAX_WORK
    ) -> Found | None:
        """The contract of launches whose numbers are all known, and whether they surely touch what it says.

        None where following them takes too many numbers.
        """
        numbers = sorted(constants.items()), sorted(grid.items()), most
        key = key_of("launch", own_sources(), versions("xdsl"), self._text(kernel), json.dumps(numbers))
        if key not in self._found:
            kept = self._cache.get(key, _is_contract)
            self._found[key] = self._followed(key, kernel, constants, grid, most) if kept is None else _read(kept)
        return self._found[key] if self._found[key][0] else None

    def _followed(
        self, key: str, kernel: FuncOp, constants: Mapping[int, int], grid: Mapping[int, int], most: int
    ) -> Found:
        self.read += 1
        try:
            reader = LaunchReader(kernel, constants, [grid[axis] for axis in sorted(grid)], most)
            found = contract_from(reader), reader.is_sure
        except TooMuchWork:
            found = dict[str, object](), False
        self._cache.put(key, json.dumps(found).encode())
        return found

    def _new(
        self,
        key: str,
        kernel: FuncOp,
        signed: Collection[int],
        constants: Mapping[int, int],
        grid: Mapping[int, int],
        effort: Effort,
    ) -> Found:
        self.read += 1
        reader = KernelReader(kernel, frozenset(signed), constants, grid, effort)
        found = contract_from(reader), reader.ranges.is_cut_short
        self._cache.put(key, json.dumps(found).encode())
        return found

    def _text(self, kernel: FuncOp) -> str:
        if kernel not in self._texts:
            stream = StringIO()
            IrPrinter(stream=stream).print_op(kernel)
            self._texts[kernel] = stream.getvalue()
        return self._texts[kernel]


def _read(entry: bytes) -> Found:
    record, is_cut_short = json.loads(entry)
    return cast("Record", record), bool(is_cut_short)


def _is_contract(entry: bytes) -> bool:
    try:
        record, is_cut_short = json.loads(entry)
    except ValueError:
        return False
    return isinstance(record, dict) and isinstance(is_cut_short, bool)
