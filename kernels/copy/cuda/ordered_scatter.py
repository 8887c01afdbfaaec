"""Scatters whose updates may meet, on a GPU: a thread has some places, and applies their updates in order.

for each chunk of updates {
  each thread: who owns the place of one of them, in shared memory; wait for all
  for each update of the chunk: its owners apply it, each to some of its elements; wait for all
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i32

from mlirt.dialects.fused.scatter import ScatterOp
from mlirt.dialects.indexing import ScatterMode
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_count, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.copy.scatter import combined, computed_type, copy_data
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.nest_words import position
from mlirt.kernels.lib.language.simt_words import block_id, shared_memory, sync_threads, thread_id
from mlirt.kernels.lib.language.words import Tensor, extent, integer_of, place, split, static_range
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ScatterOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 1  # before the general loops, in which a thread has all updates that may meet

_THREADS = 256
_MIN_UPDATES = 128  # in order: fewer take a thread no longer
_MAX_APART = 4096  # so many threads of the general loops keep a device busy


@dataclass(frozen=True)
class _Parts:
    """The updates: `meeting` dimensions whose updates may meet, from the first on or at `axis`, and all others.

    A block has the updates of one index along the `apart` dimensions, of `blocks` that share their places; each update
    is applied by `lanes` threads, one for some of its elements in the `tail`.
    """

    axis: int | None
    meeting: tuple[Dim, ...]
    apart: tuple[Dim, ...]
    tail: tuple[Dim, ...]
    lanes: int
    blocks: int

    @property
    def owners(self) -> int:
        """The threads of a block that have different places."""
        return _THREADS // self.lanes


def lower(op: ScatterOp, lowering: Lowering) -> bool:
    parts = _parts(op, lowering)
    if parts is None:
        return False
    copy_data(op, lowering)
    k, wide = lowering.kernel("scatter"), computed_type(op)
    build(k, _scatter, op, parts, Tensor(op.indices), Tensor(op.updates, wide), Tensor(op.output, wide))
    k.finish(op, grid=[product(parts.apart) * parts.blocks, 1, 1], block=[_THREADS])
    return True


def _parts(op: ScatterOp, lowering: Lowering) -> _Parts | None:
    """How threads share the updates; None where the general loops take no longer."""
    sizes, values = dims(op.updates.type), typical_values(lowering.block)
    axis = op.axis.value.data if op.mode.data is ScatterMode.ELEMENT else None
    if axis is None:
        own = rank(op.indices.type) - 1
        meeting, apart, tail = sizes[:own], (), sizes[own:]
    else:
        meeting, apart, tail = (sizes[axis],), (*sizes[:axis], *sizes[axis + 1 :]), ()
    if op.unique_indices.value.data or element_count(op.updates.type) == 0:
        return None
    if typical(product(meeting), values) < _MIN_UPDATES or typical(product((*apart, *tail)), values) > _MAX_APART:
        return None
    lanes = 1
    while lanes < min(_THREADS, typical(product(tail), values)):
        lanes *= 2
    whole = dims(op.output.type)
    places = product(whole[: op.depth]) if axis is None else whole[axis]
    needed = -(-typical(places, values) * lanes // _THREADS)
    blocks = max(1, min(needed, lowering.target.gpu.processors // typical(product(apart), values)))
    return _Parts(axis, meeting, apart, tail, lanes, blocks)


@kernel
def _scatter(op: ScatterOp, parts: _Parts, indices: Tensor, updates: Tensor, y: Tensor) -> None:
    block, thread = block_id(), thread_id()
    own = block % parts.blocks * parts.owners + thread // parts.lanes
    apart = split(block // parts.blocks, parts.apart) if parts.apart else []
    count, elements = extent(product(parts.meeting)), extent(product(parts.tail))
    owners = shared_memory("owners", _THREADS, i32)
    for first in range(0, count, _THREADS):
        owner = place(-1)
        if first + thread < count:
            target, valid = _place(op, parts, indices, _update(parts, place(first + thread), apart))
            if valid:
                owner = _number(op, parts, target) % (parts.owners * parts.blocks)
        owners[thread] = integer_of(owner, i32)
        sync_threads()
        for number in range(min(count - first, _THREADS)):
            if owners[number] == integer_of(own, i32):
                update = _update(parts, place(first + number), apart)
                target, valid = _place(op, parts, indices, update)
                if valid:
                    for element in range(thread % parts.lanes, elements, parts.lanes):
                        behind = split(place(element), parts.tail) if parts.tail else []
                        at = [*target, *behind]
                        y[at] = combined(op, lambda: y[at], updates[*update, *behind])
        sync_threads()


def _update(parts: _Parts, number: Value, apart: Sequence[Value]) -> list[Value]:
    """The index of an update along each dimension but the tail's."""
    meeting = split(number, parts.meeting)
    return meeting if parts.axis is None else [*apart[: parts.axis], *meeting, *apart[parts.axis :]]


@kernel
def _place(op: ScatterOp, parts: _Parts, indices: Tensor, update: Sequence[Value]) -> tuple[list[Value], bool]:
    """Where an update goes along each dimension of the result but the tail's, and whether there is such a place."""
    lengths = [extent(length) for length in dims(op.output.type)]
    if parts.axis is not None:
        place, valid = position(indices[update], lengths[parts.axis])
        return [*update[: parts.axis], place, *update[parts.axis + 1 :]], valid
    found, valid = list[Value](), True
    for axis in static_range(op.depth):
        place, is_there = position(indices[*update, axis], lengths[axis])
        found = [*found, place]
        valid = valid and is_there
    return found, valid


@kernel
def _number(op: ScatterOp, parts: _Parts, target: Sequence[Value]) -> Value:
    """The number of a place among those whose updates a block has."""
    number = target[0] if parts.axis is None else target[parts.axis]
    for axis in static_range(1, op.depth):
        number = number * extent(dims(op.output.type)[axis]) + target[axis]
    return number


__all__ = ["lower"]
