"""Which register tile suits a convolution: a model of cycles per step of its sum, no IR."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.cpu.register_tiles.step_registers import StepRegisters, step_loads, step_registers
from mlirt.kernels.lib.tile import RegisterTile

_MAX_COLUMNS = 8
# Where the pixels in a row are not known: a divisor of the lengths that networks have, and the cost of not being one.
_USUAL_PIXELS = 8
_MISFIT = 1.25


def choose_tile(
    length: Dim,
    blocks: int,
    cpu: CpuDevice,
    multiple: int = 1,
    needed: Callable[[int], float] = lambda _: 1.0,
    room: StepRegisters | None = None,
    steps: int = 0,
) -> RegisterTile:
    """The tile with the least cycles for `length` pixels of a row and `blocks` blocks of channels.

    A tile has a multiple of `multiple` pixels. `needed` says which part of the accumulators panels of so many blocks
    have, `room` the registers besides accumulators, `steps` how many steps the sum has, if the weights count.
    """
    return next(iter(tile_cycles(length, blocks, cpu, multiple, needed, room, steps)))


@lru_cache(maxsize=4096)
def tile_cycles(
    length: Dim,
    blocks: int,
    cpu: CpuDevice,
    multiple: int = 1,
    needed: Callable[[int], float] = lambda _: 1.0,
    room: StepRegisters | None = None,
    steps: int = 0,
) -> dict[RegisterTile, float]:
    """The tiles for `choose_tile`, the best first, and the cycles of a step of the sum of all pixels of a row; for a
    length that is not known, of a pixel.
    """
    registers, room = cpu.registers, room or step_registers(cpu)
    most = min(length, registers) if isinstance(length, int) else registers
    shapes = [
        RegisterTile(pixels, columns)
        for columns in range(1, min(blocks, _MAX_COLUMNS) + 1)
        for pixels in range(multiple, most + 1, multiple)
        if room.fit(RegisterTile(pixels, columns), registers)
    ]
    costs = {shape: _cost(shape, length, blocks, cpu, steps) * needed(shape.blocks) for shape in shapes}
    return dict(sorted(costs.items(), key=lambda item: (item[1], -item[0].pixels * item[0].blocks)))


def _cost(shape: RegisterTile, length: Dim, blocks: int, cpu: CpuDevice, steps: int) -> float:
    panels, each = -(-blocks // shape.blocks), max(cycles(shape, cpu), _streamed(shape, cpu, steps))
    if isinstance(length, int):
        return -(-length // shape.pixels) * panels * each
    fits = 1.0 if _USUAL_PIXELS % shape.pixels == 0 else _MISFIT
    return fits * panels * each / shape.pixels


def cycles(shape: RegisterTile, cpu: CpuDevice) -> float:
    """For one step of the sum: multiplications and loads begin side by side; each sum waits for the one before it."""
    loads = step_loads(shape.pixels, shape.blocks, cpu) / cpu.loads + 0.5
    return max(shape.pixels * shape.blocks / cpu.multiplies, loads, cpu.latency)


def _streamed(shape: RegisterTile, cpu: CpuDevice, steps: int) -> float:
    """The cycles in which the weights of a step arrive, where the first-level cache does not keep those of a panel."""
    step = shape.blocks * cpu.vector_bits // 8
    return step / cpu.tiles.panel_bytes if steps * step > cpu.l1_ways * cpu.l1_way_bytes else 0.0


def lines_for_each(lines: int, tiles: int | None) -> int:
    """How many of the `lines` lines that are read in a step each of `tiles` tiles asks for, so that all are asked for.

    It is a power of two, so that few kernels differ in it; one where the number of tiles is not known.
    """
    each = 1
    while tiles is not None and each * tiles < lines and each < lines:
        each *= 2
    return each
