"""Which register tile suits a matrix product: a model of cycles per step of the sum, no IR."""

from __future__ import annotations

from operator import itemgetter

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.cpu.register_tiles.step_registers import StepRegisters, step_loads, step_registers
from mlirt.kernels.lib.tile import RegisterTile

# Shapes that leave registers for the factors: those of the right one, and two for elements of the left one. With a
# single one left the register allocator keeps an accumulator in memory, and each step waits for its store and load. One
# to three rows read the right factor from memory as they multiply.
_FEW_OF_32 = ((1, 8), (1, 4), (1, 2), (1, 1), (2, 8), (2, 4), (2, 2), (2, 1), (3, 8), (3, 4), (3, 2), (3, 1))
_SHAPES_OF_32 = (
    *_FEW_OF_32,
    *((4, 6), (4, 4), (4, 2), (4, 1), (6, 4), (8, 3), (12, 2), (14, 2), (7, 1), (14, 1)),
)
# Of Arm: those for which there are registers.
_SHAPES_OF_NEON = (
    *(*_FEW_OF_32, (3, 6)),
    *((4, 5), (4, 4), (4, 2), (4, 1), (5, 4), (6, 3), (6, 2), (7, 3), (8, 2), (9, 2), (7, 1), (8, 1), (14, 1)),
)
_SHAPES_OF_16: dict[int, tuple[tuple[int, int], ...]] = {
    256: (
        *((1, 8), (1, 4), (1, 2), (1, 1), (2, 6), (2, 3), (2, 1), (3, 4), (3, 2), (3, 1)),
        *((4, 2), (4, 1), (5, 2), (6, 2), (12, 1)),
    ),
    128: (
        *((1, 8), (1, 4), (1, 2), (1, 1), (2, 4), (2, 2), (2, 1), (3, 3), (3, 2), (3, 1)),
        *((4, 2), (4, 1), (5, 2), (8, 1)),
    ),
}
_MANY_REGISTERS = 32
_FEW_ROWS = 4
_UNKNOWN_ROWS, _UNKNOWN_COLUMNS = 192, 768


def tile_cycles(
    rows: Dim,
    columns: Dim,
    cpu: CpuDevice,
    threads: int,
    pairs: int = 1,
    row_bytes: Dim = 0,
    room: StepRegisters | None = None,
) -> dict[RegisterTile, float]:
    """The tiles that suit a product, the one with the least work for the busiest of `threads` workers first, and the
    cycles of a step of all sums on one worker.

    `pairs` is how many products of this size there are, `row_bytes` the distance between rows of the left
    factor, `room` the registers besides accumulators.
    """
    lanes = cpu.vector_bits // 32
    count = rows if isinstance(rows, int) else _UNKNOWN_ROWS
    width = columns if isinstance(columns, int) else _UNKNOWN_COLUMNS
    shapes = [RegisterTile(*shape) for shape in _offered(cpu, room or step_registers(cpu)) if _fits(shape, rows)]

    def cost(shape: RegisterTile) -> float:
        crowded = isinstance(row_bytes, int) and row_bytes > 0 and row_bytes % cpu.l1_way_bytes == 0
        slow = cpu.tiles.crowded if crowded and shape.rows >= cpu.l1_ways else 1.0
        panels = -(-width // shape.width(lanes))
        full, rest = divmod(count, shape.rows)
        tiles = pairs * panels * (full + (rest > 0))
        each = cycles(shape.rows, shape, cpu), rest and cycles(rest, shape, cpu)
        work = pairs * panels * (full * each[0] + each[1])
        return slow * work * -(-tiles // threads) * threads / tiles

    costs = {shape: cost(shape) for shape in shapes}
    return dict(sorted(costs.items(), key=itemgetter(1)))


def _offered(cpu: CpuDevice, room: StepRegisters) -> tuple[tuple[int, int], ...]:
    if cpu.multiplies_by_lane:
        return tuple(shape for shape in _SHAPES_OF_NEON if room.fit(RegisterTile(*shape), cpu.registers))
    return _SHAPES_OF_16[cpu.vector_bits] if cpu.registers < _MANY_REGISTERS else _SHAPES_OF_32


def _fits(shape: tuple[int, int], rows: Dim) -> bool:
    """Few rows get a shape made for them; tiles are never higher than the matrix."""
    if not isinstance(rows, int):
        return shape[0] > _FEW_ROWS
    return min(rows, _FEW_ROWS) <= shape[0] <= rows


def cycles(rows: int, shape: RegisterTile, cpu: CpuDevice) -> float:
    """For one step of the sum: multiplications and a chain of additions, into which loads and the stream of
    a panel from the second-level cache fit, but not quite.
    """
    multiplications = rows * shape.vectors / cpu.multiplies
    loads = step_loads(rows, shape.vectors, cpu, addresses=1) / cpu.loads
    stream = shape.width(cpu.vector_bits // 32) * 4 / cpu.tiles.panel_bytes
    least = max(multiplications, loads, stream, cpu.latency)
    return least + cpu.tiles.loads_show * loads + cpu.tiles.stream_shows * stream


def tail_rows(rows: Dim, shape: RegisterTile) -> tuple[int, ...]:
    """Heights of the tiles for what whole tiles leave: one where that is known, else powers of two."""
    if isinstance(rows, int):
        rest = rows % shape.rows
        return (rest,) if rest else ()
    return tuple(size for size in (8, 4, 2, 1) if size < shape.rows)
