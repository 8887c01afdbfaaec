"""Non-maximum suppression by blocks: each has a group, whose threads hide what a box that stays overlaps.

for each box in turn, until there are enough, unless it is hidden {
  it stays; each thread: hide those of its boxes that it overlaps; wait for all
}
"""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i32

from mlirt.dialects.fused.suppress import SuppressOp
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.language import build, kernel, value_of
from mlirt.kernels.lib.language.simt_words import block_id, shared_memory, sync_threads, thread_id
from mlirt.kernels.lib.language.words import Tensor, cast, clamp, constant, extent, place
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.suppress.overlap import overlaps

OPS = (SuppressOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 1  # before the general loops, in which a thread has a group

_THREADS, _WARP = 512, 32
_FLAG_BYTES = 4


def lower(op: SuppressOp, lowering: Lowering) -> bool:
    groups, length = dims(op.allowed.type)
    if not isinstance(length, int) or _FLAG_BYTES * length > lowering.target.gpu.shared_bytes_of(1):
        return False
    k = lowering.kernel("suppress")
    threads = min(_THREADS, max(_WARP, -(-length // _WARP) * _WARP))
    build(k, _suppress, op, Tensor(op.boxes), Tensor(op.allowed), Tensor(op.output), length, threads)
    k.finish(op, grid=[groups, 1, 1], block=[threads])
    return True


@kernel
def _suppress(op: SuppressOp, boxes: Tensor, allowed: Tensor, kept: Tensor, length: int, threads: int) -> None:
    """`for each box i while there are too few: if it stays: hidden[j] |= overlaps(j, i) for all j > i`.

    Flags are in shared memory.
    """
    group, thread = block_id(), thread_id()
    limit, threshold = Tensor(op.limit)[()], Tensor(op.threshold)[()]
    hidden = shared_memory("hidden", length, i32)
    for i in range(thread, length, threads):
        hidden[i] = cast(allowed[group, i], i1, i32) ^ 1
        kept[group, i] = constant(0, i1)
    sync_threads()
    count, i = constant(0, limit.type), 0
    while i < length and count < limit:
        at = clamp(place(i), extent(length))  # which proves that it is inside
        stays = value_of(hidden[at] == 0)
        if stays:
            if thread == 0:
                kept[group, at] = constant(1, i1)
            box = [boxes[group, at, corner] for corner in range(4)]
            for j in range(at + 1 + thread, length, threads):
                if overlaps([boxes[group, j, corner] for corner in range(4)], box, threshold):
                    hidden[j] = 1
            sync_threads()
        count = count + cast(stays, i1, limit.type)
        i = i + 1


__all__ = ["lower"]
