"""How many sequences and hidden units of a recurrent layer a CPU keeps in vector registers at once."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.kernels.lib.tile import RegisterTile

_MIN_ACCUMULATORS = 8  # sums that hide the time of a multiplication
_MAX_ROWS = 8


@dataclass(frozen=True)
class RecurrentTile(RegisterTile):
    """`rows` sequences by `blocks` blocks of `lanes` hidden units, of which each has a vector per gate."""

    lanes: int
    units: int

    @property
    def all_blocks(self) -> int:
        """Blocks of the whole layer, the last one perhaps in part."""
        return -(-self.units // self.lanes)

    @property
    def panels(self) -> int:
        """Tiles along the hidden units."""
        return -(-self.all_blocks // self.blocks)

    @property
    def padded_units(self) -> int:
        """Hidden units of all panels."""
        return self.panels * self.width(self.lanes)


def tile_for(sequences: int | None, units: int, gates: int, lanes: int, workers: int) -> RecurrentTile:
    """As many rows as each worker has, then as many blocks as registers are left for without much waste.

    `sequences` is None where only the run knows how many there are.
    """
    registers = 24 if lanes >= 16 else 12
    rows = max(1, min(_MAX_ROWS, registers // gates))
    if sequences is not None:
        rows = max(1, min(rows, -(-sequences // workers)))
        rows = -(-sequences // -(-sequences // rows))
    blocks = -(-units // lanes)
    fitting = range(1, max(1, registers // (gates * rows)) + 1)

    def badness(count: int) -> tuple[int, int]:
        short = max(0, _MIN_ACCUMULATORS - rows * gates * count)
        return -(-blocks // count) * count * (_MIN_ACCUMULATORS + short), -count

    return RecurrentTile(rows, min(fitting, key=badness), lanes, units)
