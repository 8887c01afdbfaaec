"""How an int8 convolution uses the matrix unit of a processor: a model of cycles, no IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.kernel.amx import MAX_PIXELS, REGISTERS, ROW_BYTES
from mlirt.kernels.lib.tile import Tile


@dataclass(frozen=True)
class MatrixTile(Tile):
    """`rows` registers of `pixels` pixels by `columns` registers of 16 channels."""

    pixels: int

    @property
    def length(self) -> int:
        """The pixels of a tile."""
        return self.rows * self.pixels


def taps_at_once(taps: int, pixel_bytes: int, dilation: int) -> int:
    """How many neighbouring taps of a window row a register takes, the pixels of which lie side by side in memory."""
    if dilation != 1:
        return 1
    return max(count for count in range(1, taps + 1) if taps % count == 0 and count * pixel_bytes <= ROW_BYTES)


def choose_matrix_tile(length: int, blocks: int, depth: int, cpu: CpuDevice) -> tuple[MatrixTile, float]:
    """The tile with the least cycles for `length` pixels in a row, `blocks` blocks of channels and `depth` bytes at
    once; and these cycles, of one step for all of a row.
    """
    shapes = [
        MatrixTile(rows, columns, pixels)
        for rows in range(1, REGISTERS)
        for columns in range(1, min(blocks, REGISTERS) + 1)
        for pixels in range(1, MAX_PIXELS + 1)
        if rows * columns + rows + columns <= REGISTERS and rows * pixels <= length
    ]

    def cost(tile: MatrixTile) -> float:
        products = tile.rows * tile.columns * tile.pixels
        loads = (tile.rows * tile.pixels + tile.columns * depth / 4) / cpu.matrix_unit.loads
        return -(-length // tile.length) * -(-blocks // tile.columns) * max(products, loads, cpu.matrix_unit.latency)

    best = min(shapes, key=lambda tile: (cost(tile), -tile.length))
    return best, cost(best)


def piece_of(tile: MatrixTile, most_vectors: int = 16) -> int:
    """How many pixels of a tile are finished at once: all pieces are alike, and fit the vector registers."""
    return max(
        size for size in range(1, tile.length + 1) if tile.length % size == 0 and size * tile.columns <= most_vectors
    )
