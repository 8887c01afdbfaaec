"""Which reductions across memory the threads of a block share out, and how: they take one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, rank, strides
from mlirt.dialects.typical_sizes import typical

_ACROSS = 32  # columns of a block at most
_THREADS, _MIN_ELEMENTS = 1024, 4  # threads of a block, and elements that each of them combines at least
# Bytes that a warp loads at a time where a block reads `_PART` of what the device's figures say of blocks in a loop,
# and what it takes besides, in launches: four shapes of halves took 6.4 to 12.7 us on an H200, two launches 4.9 to 6.5.
_FULL_LOAD, _PART, _BESIDES = 128, 0.65, 0.6
_MIN_LENGTH = 65  # shorter columns are walked along by a thread each


@dataclass(frozen=True)
class ColumnBlocks:
    """A block has `across` neighbouring columns, and `along` threads for each, which is a power of two."""

    across: int
    along: int


def column_blocks(op: ReductionOp, known: Mapping[str, int], device: GpuDevice) -> ColumnBlocks | None:
    """How blocks share out the columns; None where a thread for each column, or two launches, are faster."""
    reduced = op.reduced.dims()
    neighbours = crossed(op)
    if neighbours is None or not all(isinstance(size, int) for size in reduced) or _asks_for_places(op):
        return None
    length, width = prod(int(str(size)) for size in reduced), sum(byte_width(element_of(one.type)) for one in op.inputs)
    columns, results = typical(neighbours, known), typical(element_count(op.output.type), known)
    if length < _MIN_LENGTH or columns < 1 or not width:
        return None
    widths = [1 << bit for bit in range(_ACROSS.bit_length()) if bit == 0 or 1 << bit < 2 * columns]
    times = {across: _time(across, length * width, width, columns, results, device) for across in reversed(widths)}
    across, along = min(times, key=times.__getitem__), 1
    while 2 * along * across <= _THREADS and 2 * along * _MIN_ELEMENTS <= length:
        along *= 2
    two_launches = results * length * width / device.rows.read_bytes + 2 * device.rows.launch
    return ColumnBlocks(across, along) if times[across] <= two_launches else None


def _time(across: int, column: int, width: int, columns: int, results: int, device: GpuDevice) -> float:
    """Microseconds of blocks that have so many columns of `column` bytes, besides the launch."""
    blocks, times = results // columns * -(-columns // across), device.rows
    loaded = _PART * times.loop_bytes * min(1.0, across * width / _FULL_LOAD)
    return -(-blocks // device.processors) * (_BESIDES * times.launch + column * across / loaded)


def crossed(op: ReductionOp) -> Dim | None:
    """How many neighbours in memory belong to different results, of each input alike; None where they do not."""
    count, kept = len(op.reduced.dims()), rank(op.output.type)
    found: set[str] = set()
    for value, access in zip(op.inputs, op.access, strict=True):
        names = _along_memory(access, dims(value.type), strides(value.type)[0])
        if not names or names & {f"d{kept + axis}" for axis in range(count)}:
            return None
        found |= names
    axes = [axis for axis in range(kept) if f"d{axis}" in found]
    return dims(op.output.type)[axes[0]] if len(axes) == 1 and len(found) == 1 else None


def _along_memory(access: AccessAttr, sizes: Sequence[Dim], steps: Sequence[Dim]) -> frozenset[str]:
    """What the index depends on along which neighbours lie in memory."""
    pairs = zip(access.indices(), sizes, steps, strict=True)
    moving = [index for index, size, step in pairs if step == 1 and size != 1]
    return symbols(moving[0]) if moving else frozenset()


def _asks_for_places(op: ReductionOp) -> bool:
    return any(isinstance(inner, IndexOp) for region in op.regions for inner in region.block.ops)


__all__ = ["ColumnBlocks", "column_blocks", "crossed"]
