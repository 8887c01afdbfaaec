"""Rows in registers: when each inner loop of a kernel walks along the same row, its threads read the row once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceOp, StoreOp, stride_values
from mlirt.dialects.kernel.simt import MAX_THREADS
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.passes.lowering.threads.launch_sizes import LaunchSizes
from mlirt.passes.lowering.threads.vector_width import MAX_ACCESS_BYTES, VectorLoop, has_aligned_rows

InnerLoop: TypeAlias = ParallelOp | ReduceOp
_MIN_ROW = 4  # elements of a row
_MAX_THREAD_ELEMENTS = 64  # elements of a row that a thread holds
_TARGET_THREAD_ELEMENTS = 32  # that it should hold
_TOGETHER = 16  # bytes that neighbours should read at a time
_FAR_TOGETHER, _DEEP = 64, 4  # bytes that they should where each still reads so many vectors
_LONG_ROWS = 4  # times the threads that a GPU should have: a team is as small as a row allows
_MAX_OPS = 3000  # ops after unrolling
MANY_SHORT_ROWS = 0.5  # times the threads that a GPU should have: a thread for each short row is enough
SHORT_ROW = 16


@dataclass(frozen=True)
class RowPlan:
    """A team of threads holds a row: each has `count` vectors, `team` vectors apart. The team may be those of several
    `blocks`, which are a cluster.
    """

    team: int
    vector: int
    count: int
    length: int
    blocks: int = 1

    @property
    def is_partial(self) -> bool:
        """Whether the last vectors of some threads lie beyond the row."""
        return self.team * self.vector * self.count != self.length


def row_plan(
    outer: ParallelOp, launches: Sequence[LaunchSizes], threads: float, clusters: Sequence[int] = ()
) -> RowPlan | None:
    """How a team holds the row that the inner loops walk along; None where they do not, or the row is too long.

    `clusters` says how many clusters of 1, 2, 4, .. blocks have a place at once, where the device has clusters: rows
    that are too long for a block are held by one where each row has a place. Short rows across memory, of which others
    lie beside, have a thread each.
    """
    loops = [op for op in outer.body.block.ops if isinstance(op, ParallelOp | ReduceOp)]
    lengths = {known(extent) for op in loops for extent in op.extents}
    if not loops or len(lengths) != 1 or any(len(op.extents) != 1 for op in loops) or _nested(outer, loops):
        return None
    (length,) = lengths
    rows = [one.count(outer.extents) for one in launches]
    if length is None or length < _MIN_ROW or None in rows or not rows or _rereads(outer):
        return None
    vectors, count = [VectorLoop.of(op) for op in loops], launches[0].guess(outer.extents)
    accesses = [(loop, access) for loop in vectors for access in loop.accesses()]
    is_alone = length <= SHORT_ROW or (length <= _MAX_THREAD_ELEMENTS and count >= MANY_SHORT_ROWS * threads)
    if not accesses and is_alone and len(loops) > 1 and _reads_across(outer, vectors):
        alone = RowPlan(1, 1, length, length)
        return alone if sum(loop.length(1) for loop in vectors) * length <= _MAX_OPS else None
    if not accesses or not all(loop.allows_vectors() for loop in vectors):
        return None
    narrowest = min(byte_width(memory(access.buffer).get_element_type()) for _, access in accesses)
    vector = MAX_ACCESS_BYTES // narrowest
    while vector > 1 and not _is_aligned(accesses, launches, vector, length):
        vector //= 2
    plan = _split(length, vector, narrowest, count, threads)
    if plan is None:
        plan = next(filter(None, (_held_by(n, length, vector, count, places) for n, places in _sizes(clusters))), None)
    if plan is None or (plan.is_partial and any(_reads_elsewhere(loop) for loop in vectors)):
        return None
    return plan if sum(loop.length(plan.vector) for loop in vectors) * plan.count <= _MAX_OPS else None


def _sizes(clusters: Sequence[int]) -> list[tuple[int, int]]:
    """Blocks of a cluster, of which there are several, and how many such clusters there are at once."""
    return [(1 << number, places) for number, places in enumerate(clusters) if number]


def _held_by(blocks: int, length: int, vector: int, rows: int, places: int) -> RowPlan | None:
    """The row in the registers of a cluster; None where it is too long for them, or there are more rows than places."""
    team, vectors = blocks * MAX_THREADS, length // vector
    count = -(-vectors // team)
    if rows > places or count * vector > _MAX_THREAD_ELEMENTS:
        return None
    return RowPlan(team, vector, count, length, blocks)


def _split(length: int, vector: int, width: int, rows: int, threads: float) -> RowPlan | None:
    """The team of the row: neighbours that read a sector or two at a time, more of them for long or few rows."""
    vectors = length // vector
    held = max(1, _TARGET_THREAD_ELEMENTS // vector)
    team = 1
    while team < MAX_THREADS and team < vectors and (team * held < vectors or team * vector * width < _TOGETHER):
        team *= 2
    while 2 * team * _DEEP <= vectors and team * vector * width < _FAR_TOGETHER:
        team *= 2
    while team < MAX_THREADS and team < vectors and rows * team < _LONG_ROWS * threads:
        team *= 2
    count = -(-vectors // team)
    return None if count * vector > _MAX_THREAD_ELEMENTS else RowPlan(team, vector, count, length)


def _nested(outer: ParallelOp, loops: Sequence[Operation]) -> bool:
    """Whether there are loops elsewhere than directly in the body."""
    found = [op for op in outer.body.block.walk() if isinstance(op, ParallelOp | ReduceOp)]
    return len(found) != len(loops)


def _rereads(outer: ParallelOp) -> bool:
    """Whether the loop reads what it stores."""
    stored = {op.buffer for op in outer.walk() if isinstance(op, StoreOp)}
    return any(isinstance(op, LoadOp) and op.buffer in stored for op in outer.walk())


def _is_aligned(
    accesses: Sequence[tuple[VectorLoop, LoadOp | StoreOp]], launches: Sequence[LaunchSizes], vector: int, length: int
) -> bool:
    if length % vector:
        return False
    return all(
        has_aligned_rows(loop, op, vector, launches)
        and all(
            one.is_aligned(op.buffer, min(MAX_ACCESS_BYTES, vector * byte_width(memory(op.buffer).get_element_type())))
            for one in launches
        )
        for loop, op in accesses
    )


def _reads_across(outer: ParallelOp, loops: Sequence[VectorLoop]) -> bool:
    """Whether several loops read what lies across memory in a row, so that neighbouring threads read neighbours."""
    beside = outer.body.block.args[-1]
    reading = 0
    for loop in loops:
        loads = [op for op in loop.outer.body.block.ops if isinstance(op, LoadOp) and _moves(loop, op)]
        reading += bool(loads)
        if not loop.allows_unrolling():
            return False
        for op in loads:
            steps = dict(zip(op.indices, stride_values(op), strict=True))
            if steps.get(beside) != 1 or not isinstance(steps.get(loop.last), int):
                return False
    return reading > 1


def _reads_elsewhere(loop: VectorLoop) -> bool:
    """Whether a load has an address that is not along the row, so that it must not be read beyond the end."""
    return any(
        isinstance(op, LoadOp) and not loop.is_contiguous(op) and _moves(loop, op)
        for op in loop.outer.body.block.walk()
    )


def _moves(loop: VectorLoop, op: LoadOp) -> bool:
    pairs: list[tuple[SSAValue, SSAValue | int]] = list(zip(op.indices, stride_values(op), strict=True))
    return any(index in loop.varying and stride != 0 for index, stride in pairs)
