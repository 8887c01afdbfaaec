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

_ACROSS, _SECTOR = 32, 32  # columns of a block, and bytes of neighbours that it reads at least
_THREADS, _MIN_ELEMENTS = 1024, 4  # threads of a block, and elements that each of them combines at least
_FULL_LOAD = 128  # bytes that a warp loads at a time where blocks read as fast as the device's figures say
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
    across = _ACROSS
    while across > 1 and (across >= 2 * columns or _is_too_wide(across, width, columns, results, device)):
        across //= 2
    along = 1
    while 2 * along * across <= _THREADS and 2 * along * _MIN_ELEMENTS <= length:
        along *= 2
    blocks = results // columns * -(-columns // across)
    rounds, times = -(-blocks // device.processors), device.rows
    all_, loaded = results * length * width / times.read_bytes, min(1.0, across * width / _FULL_LOAD)
    own = rounds * length * across * width / (times.loop_bytes * loaded)
    return ColumnBlocks(across, along) if max(own, all_) <= all_ + times.launch else None


def _is_too_wide(across: int, width: int, columns: int, results: int, device: GpuDevice) -> bool:
    """Whether narrower blocks still read whole sectors, and keep more processors busy."""
    return across * width >= 2 * _SECTOR and results // columns * -(-columns // across) < device.processors


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
