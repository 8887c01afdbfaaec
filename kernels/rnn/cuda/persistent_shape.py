"""How the hidden units of a recurrent layer are shared by blocks, and the depth of its products by warps."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.kernel.simt import WARP

UNITS = 8  # hidden units of a block: with two gates they fill the 16 rows of a matrix unit's tile
COLUMNS = 8  # sequences in a tile of the matrix unit
_DEPTH_OF_WARP = 64  # hidden units that a warp best multiplies
_REGISTERS, _MAX_REGISTERS = 65536, 255  # of a multiprocessor, of a thread
_OTHER_REGISTERS = 64  # of a thread, beside weights
_MAX_WARPS = 16
# Microseconds of a step, fitted to measurements on an H200: the way of a number through memory; what each block, warp
# and register of weights adds; a register in single precision for each further sequence; and for each further
# round of loads that a thread makes, what each block adds that reads at the same time.
_STEP, _BLOCK, _WARP, _REGISTER, _SEQUENCE, _ROUND = 0.68, 0.0025, 0.02, 0.003, 0.001, 0.0008
# The same of one block, in which nothing goes through memory: a step, what each register of weights adds, and what each
# further cell of a thread adds.
_BLOCK_STEP, _BLOCK_REGISTER, _BLOCK_CELL = 0.22, 0.005, 0.4
_MAX_THREADS = 1024
_MAX_SEQUENCES = 4  # that a thread has the cells of


@dataclass(frozen=True)
class PersistentShape:
    """A layer of `hidden` units for `batch` sequences, with `gates` products for each unit."""

    gates: int
    hidden: int
    batch: int
    half: bool
    warps: int

    @property
    def name(self) -> str:
        return f"w{self.warps}"

    @property
    def blocks(self) -> int:
        return -(-self.hidden // UNITS)

    @property
    def units(self) -> int:
        """Hidden units of all blocks, those beyond the last one included."""
        return self.blocks * UNITS

    @property
    def tiles(self) -> int:
        """Tiles of 16 rows; row `8 * g + u` is gate g of unit u."""
        return -(-self.gates // 2)

    @property
    def rows(self) -> int:
        return 16 * self.tiles if self.half else WARP

    @property
    def column_tiles(self) -> int:
        return -(-self.batch // COLUMNS)

    @property
    def sequences(self) -> int:
        """Sequences that products are computed for."""
        return COLUMNS * self.column_tiles if self.half else self.batch

    @property
    def threads(self) -> int:
        return WARP * self.warps

    @property
    def share(self) -> int:
        """The hidden units that each warp multiplies by."""
        step = 32 if self.half else 4
        return -(-self.hidden // (self.warps * step)) * step

    @property
    def depth(self) -> int:
        """Hidden units of all warps, those beyond the last one included."""
        return max(self.warps * self.share, self.units)

    @property
    def pitch(self) -> int:
        """From the hidden state of one sequence to the next, in elements; it avoids conflicts of shared memory."""
        return self.depth + (8 if self.half else 4)

    @property
    def weight_registers(self) -> int:
        """Registers of a thread that hold weights."""
        return self.share // 16 * 4 * self.tiles if self.half else self.share

    def fits(self) -> bool:
        """Whether the registers are enough, and threads for the cells of all sequences."""
        registers = self.weight_registers + _OTHER_REGISTERS
        return (
            registers <= _MAX_REGISTERS
            and registers * self.threads <= _REGISTERS
            and self.threads >= UNITS * self.batch
        )

    def microseconds(self, steps: int) -> float:
        """About how long the steps take."""
        further = self.column_tiles - 1 if self.half else self.batch - 1
        products = self.weight_registers * (_REGISTER + _SEQUENCE * further)
        rounds = -(-self.batch * self.units // (self.threads * (4 if self.half else 2)))
        waiting = _STEP + self.blocks * (_BLOCK + _ROUND * (rounds - 1))
        return 5 + steps * (waiting + _WARP * self.warps + products)

    def microseconds_in_one_block(self, steps: int) -> float:
        """About how long the steps take where the blocks are warps of one block."""
        cells = min(2, self.batch) if self.half else self.batch
        products = _BLOCK_REGISTER * self.weight_registers
        return 5 + steps * (_BLOCK_STEP + products + _BLOCK_CELL * (cells - 1))


def shapes_for(gates: int, hidden: int, batch: int, half: bool) -> list[PersistentShape]:
    """The shapes that a layer can have: warps by the depth and by the sequences, and half and twice as many."""
    usual = max(1, -(-hidden // _DEPTH_OF_WARP))
    least = -(-UNITS * batch // WARP)
    counts = {max(least, min(_MAX_WARPS, count)) for count in (usual // 2, usual, 2 * usual) if count}
    made = [PersistentShape(gates, hidden, batch, half, warps) for warps in sorted(counts)]
    return [shape for shape in made if shape.fits()]


def one_block_shape(gates: int, hidden: int, batch: int, half: bool) -> PersistentShape | None:
    """What each warp has where a layer's `blocks` groups of units are the warps of one block; None for a large layer.

    A thread then has the cells of two sequences in half precision, and of all sequences in single precision.
    """
    shape = PersistentShape(gates, hidden, batch, half, 1)
    threads = shape.blocks * WARP
    registers = shape.weight_registers + _OTHER_REGISTERS
    fits = threads <= _MAX_THREADS and registers <= _MAX_REGISTERS and registers * threads <= _REGISTERS
    return shape if fits and batch <= (COLUMNS if half else _MAX_SEQUENCES) else None
