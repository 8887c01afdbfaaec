"""Running sums and products along neighbours in memory, on a GPU: a team of threads shares out each row.

for some vectors of the row {
  each thread: load its neighbours, combine them one after the other
  the threads of a warp exchange what theirs come to, then the warps of a block
  each thread: store its neighbours, each combined with all that is before it
}

Where rows are few and long, each of several teams has a part of one, and a launch before that tells what each part
comes to. Which elements are combined in which order depends on the shape alone.
"""

from __future__ import annotations

from dataclasses import replace

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.kernel.simt import MAX_THREADS
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.cuda.scan_kernel import Scan, ScanKernel, computed

OPS = (CumulativeOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_VECTOR_BYTES = 16  # bytes of a vector
_VECTORS = 4  # that a thread holds
_THREADS_OF_ROW, _FEW_ROWS = 256, 512  # of a team, and with how many rows it may be the largest
_TOGETHER = 4  # threads that should read neighbours
_ENOUGH = 4  # times the threads that a GPU should have: a team is as small as its row allows
_BLOCKS = 8  # of each processor, into which few rows are parted
_MIN_PARTS = 4  # that are worth a launch


def lower(op: CumulativeOp, lowering: Lowering) -> bool:
    found = _scan(op, lowering)
    if found is None:
        return False
    if found.parts == 1:
        ScanKernel(op, found, lowering).write()
        return True
    length = dims(op.input.type)[op.axis.value.data]
    count = product(dims(op.input.type)) // length * found.parts
    sums = lowering.placements.scratch(count * byte_width(computed(element_of(op.input.type))))
    ScanKernel(op, found, lowering, sums).write(only_sums=True)
    ScanKernel(op, found, lowering, sums).write()
    return True


def _scan(op: CumulativeOp, lowering: Lowering) -> Scan | None:
    """How the rows are shared out; None where they do not lie in memory as such."""
    element, axis, places = element_of(op.input.type), op.axis.value.data, lowering.placements
    both = [places[value].strides for value in (op.input, op.output)]
    length = dims(op.input.type)[axis]
    if any(steps[axis] != 1 for steps in both) or is_bool(element) or length == 1:
        return None
    others = [[*steps[:axis], *steps[axis + 1 :]] for steps in both]
    pairs = zip((op.input, op.output), others, strict=True)
    wide = min(widest_access(value, [*steps, length], lowering) for value, steps in pairs)
    is_wide, vector = wide * byte_width(element) == _VECTOR_BYTES, _VECTOR_BYTES // byte_width(element)
    guesses = typical_values(lowering.block)
    columns = typical(length, guesses)
    count = typical(product(dims(op.input.type)), guesses) // columns
    long = Scan(_THREADS_OF_ROW, vector, _VECTORS, is_wide)
    device = lowering.target.gpu
    parts = _parts(length, count, long, device.processors)
    if parts is not None:
        return parts
    team, most = 1, MAX_THREADS if count < _FEW_ROWS else _THREADS_OF_ROW
    while (
        team < most
        and team * vector < columns
        and (team * vector * _VECTORS < columns or team < _TOGETHER or count * team < _ENOUGH * device.moves.threads)
    ):
        team *= 2
    vectors = min(_VECTORS, -(-columns // (team * vector)))
    return Scan(team, vector, vectors, is_wide)


def _parts(length: Dim, count: int, whole: Scan, processors: int) -> Scan | None:
    """Parts of rows, where there are too few rows for all processors; None where that does not pay."""
    if not isinstance(length, int) or count >= processors:
        return None
    steps_of_row = -(-length // whole.held)
    most = min(whole.team, -(-_BLOCKS * processors // count), steps_of_row)
    steps = -(-steps_of_row // most)
    parts = -(-steps_of_row // steps)
    return replace(whole, parts=parts, steps=steps) if parts >= _MIN_PARTS else None


__all__ = ["lower"]
