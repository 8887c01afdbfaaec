"""Registers that warpgroups of a block leave to others, or take: together they have those that it started with."""

from __future__ import annotations

from mlirt.dialects.kernel.interpreter_coroutines import DeadlockError
from mlirt.dialects.kernel.simt import WARPGROUP, registers_at_start


class SharedRegisters:
    """What the warpgroups of each block of `threads` have asked for."""

    def __init__(self, threads: int) -> None:
        self._all = threads * registers_at_start(threads)
        self._asked: dict[int, dict[int, int]] = {}

    def ask(self, warpgroup: tuple[int, int], count: int, where: str) -> None:
        """A warpgroup, by its block and number, will have so many for each thread."""
        block, number = warpgroup
        asked = self._asked.setdefault(block, {})
        asked[number] = count
        wanted = sum(asked.values()) * WARPGROUP
        if wanted > self._all:
            raise DeadlockError(f"{where}: warpgroups ask for {wanted} registers, and the block has {self._all}")
