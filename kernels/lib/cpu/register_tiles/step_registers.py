"""The registers that a step of a product takes besides its accumulators, and its loads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import ceil

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.kernel.tile_products import INT8_PRODUCTS
from mlirt.kernels.lib.cpu.register_tiles.signed_sums import multiplies_signed
from mlirt.kernels.lib.tile import RegisterTile

_LANES = 4
"""Numbers in a register of processors that multiply by one lane of it, or in each part of one."""
_NEON_BITS = 128
_FACTORS_OF_SVE = 6
"""SVE multiplies by lanes of its first eight registers alone, where the register allocator puts accumulators, too."""


@dataclass(frozen=True)
class StepRegisters:
    """So many for each row of a tile, at most `max_for_rows` for all of them, for each of its vectors, and `others`."""

    row: float
    vector: int
    others: int
    max_for_rows: int = 32

    def fit(self, shape: RegisterTile, registers: int) -> bool:
        """Whether so many registers are enough for a tile."""
        for_rows = ceil(shape.rows * self.row)
        step = for_rows + shape.vectors * self.vector + self.others
        return for_rows <= self.max_for_rows and shape.rows * shape.vectors + step <= registers


# The registers for elements, besides those for the weights: one is loaded while the other is multiplied. With one alone
# the register allocator keeps an accumulator in memory, and each step waits for its store and load.
ONE_BY_ONE = StepRegisters(row=0, vector=1, others=2)
# Arm: a register has the numbers of four steps of a row, so that all rows have one.
_FOUR_STEPS = StepRegisters(row=1, vector=1, others=1)
# Four rows have one where their words of four int8 lie side by side.
_FOUR_ROWS = StepRegisters(row=1 / _LANES, vector=1, others=1)
# Numbers are made signed by one more.
_SIGNED_STEPS = replace(_FOUR_STEPS, others=2)
_SIGNED_ROWS = replace(_FOUR_ROWS, others=2)
# Without sums of int8 products in a lane, words are eight numbers of 16 bits for two rows, or for two steps of a row,
# and weights are two registers, one for two bytes of each word; another one has the order in which they are taken.
_WIDE_ROWS = StepRegisters(row=1 / 2, vector=2, others=4)
_WIDE_STEPS = StepRegisters(row=2, vector=2, others=4)


def step_registers(
    cpu: CpuDevice, word: int = 1, special: Collection[str] = (), *, rows_beside: bool = False
) -> StepRegisters:
    """What products of `word` numbers at a time take on a processor with `special` features.

    With `rows_beside` it is rows that lie side by side in memory rather than the steps of a row.
    """
    if not cpu.multiplies_by_lane:
        return ONE_BY_ONE
    found = _of_lanes(cpu, word, special, rows_beside=rows_beside)
    return replace(found, max_for_rows=_FACTORS_OF_SVE) if cpu.vector_bits > _NEON_BITS else found


def _of_lanes(cpu: CpuDevice, word: int, special: Collection[str], *, rows_beside: bool) -> StepRegisters:
    if word > 1 and multiplies_signed(cpu, special):
        return _SIGNED_ROWS if rows_beside else _SIGNED_STEPS
    if word == 1 or not INT8_PRODUCTS.isdisjoint(special):
        return _FOUR_ROWS if rows_beside else _FOUR_STEPS
    return _WIDE_ROWS if rows_beside else _WIDE_STEPS


def step_loads(rows: int, vectors: int, cpu: CpuDevice, addresses: int = 0) -> float:
    """Loads for one step of the sum of a tile; where there is one for some steps of a row, with the `addresses` that
    it takes.
    """
    return (rows * (1 + addresses) / _LANES if cpu.multiplies_by_lane else rows) + vectors
