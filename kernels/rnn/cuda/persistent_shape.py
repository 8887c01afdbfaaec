"""How the hidden units of a recurrent layer are shared by blocks, and the depth of its products by warps."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.gpu_device import GpuDevice, RecurrentEstimates
from mlirt.dialects.kernel.simt import MAX_REGISTERS, MAX_THREADS, WARP

UNITS = 8  # hidden units of a block: with two gates they fill the 16 rows of a matrix unit's tile
COLUMNS = 8  # sequences in a tile of the matrix unit
_DEPTH_OF_WARP = 64  # hidden units that a warp best multiplies
_OTHER_REGISTERS = 64  # of a thread, beside weights
_MAX_WARPS = 16
_LAUNCH = 5  # microseconds
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

    def fits(self, device: GpuDevice) -> bool:
        """Whether the registers are enough, and threads for the cells of all sequences."""
        return self.has_registers(self.threads, device) and self.threads >= UNITS * self.batch

    def has_registers(self, threads: int, device: GpuDevice) -> bool:
        """Whether so many threads of a block have registers for their weights."""
        registers = self.weight_registers + _OTHER_REGISTERS
        return registers <= MAX_REGISTERS and registers * threads <= device.registers

    def microseconds(self, steps: int, device: RecurrentEstimates) -> float:
        """About how long the steps take."""
        further = self.column_tiles - 1 if self.half else self.batch - 1
        products = self.weight_registers * (device.register + device.sequence * further)
        rounds = -(-self.batch * self.units // (self.threads * (4 if self.half else 2)))
        waiting = device.step + self.blocks * (device.block + device.round * (rounds - 1))
        return _LAUNCH + steps * (waiting + device.warp * self.warps + products)

    def microseconds_in_one_block(self, steps: int, device: RecurrentEstimates) -> float:
        """About how long the steps take where the blocks are warps of one block."""
        cells = min(2, self.batch) if self.half else self.batch
        products = device.one_block_register * self.weight_registers
        return _LAUNCH + steps * (device.one_block + products + device.one_block_cell * (cells - 1))


def shapes_for(gates: int, hidden: int, batch: int, half: bool, device: GpuDevice) -> list[PersistentShape]:
    """The shapes that a layer can have: warps by the depth and by the sequences, and half and twice as many."""
    usual = max(1, -(-hidden // _DEPTH_OF_WARP))
    least = -(-UNITS * batch // WARP)
    counts = {max(least, min(_MAX_WARPS, count)) for count in (usual // 2, usual, 2 * usual) if count}
    made = [PersistentShape(gates, hidden, batch, half, warps) for warps in sorted(counts)]
    return [shape for shape in made if shape.fits(device)]


def one_block_shape(gates: int, hidden: int, batch: int, half: bool, device: GpuDevice) -> PersistentShape | None:
    """What each warp has where a layer's `blocks` groups of units are the warps of one block; None for a large layer.

    A thread then has the cells of two sequences in half precision, and of all sequences in single precision.
    """
    shape = PersistentShape(gates, hidden, batch, half, 1)
    threads = shape.blocks * WARP
    fits = threads <= MAX_THREADS and shape.has_registers(threads, device)
    return shape if fits and batch <= (COLUMNS if half else _MAX_SEQUENCES) else None
