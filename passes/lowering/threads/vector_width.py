"""Vectorization on a GPU: how many neighbouring iterations a thread may do at once, by contiguity and alignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceOp, StoreOp, YieldOp, stride_values
from mlirt.dialects.kernel.remainder import computes_a_number
from mlirt.dialects.kernel.varying import varying_values
from mlirt.dialects.tensor_types import byte_width
from mlirt.passes.lowering.threads.launch_sizes import LaunchSizes

MAX_ACCESS_BYTES = 16  # bytes of the widest access
_MIN_ITERATIONS = 8 * 1024  # iterations below which there is nothing to gain
_MAX_OPS = 1400  # ops after unrolling
_ROUNDS = 4  # vectors of a row that each member of a team should have


@dataclass(frozen=True)
class VectorLoop:
    """A parallel loop whose last dimension becomes vectors; `varying` is what differs from element to element."""

    outer: ParallelOp | ReduceOp
    varying: frozenset[SSAValue]

    @staticmethod
    def of(outer: ParallelOp | ReduceOp) -> VectorLoop:
        block = outer.body.block
        return VectorLoop(outer, frozenset(varying_values(block, [block.args[-1]] if block.args else [])))

    @property
    def last(self) -> SSAValue:
        return self.outer.body.block.args[-1]

    def is_contiguous(self, op: Operation) -> bool:
        """Whether neighbouring iterations access neighbouring elements."""
        if not isinstance(op, LoadOp | StoreOp):
            return False
        moving = [
            (index, stride)
            for index, stride in zip(op.indices, stride_values(op), strict=True)
            if index in self.varying and stride != 0
        ]
        return len(moving) == 1 and moving[0][0] is self.last and moving[0][1] == 1

    def differs(self, op: Operation) -> bool:
        """Whether an op has to be done for each element."""
        return any(result in self.varying for result in op.results) or any(
            isinstance(inner, StoreOp) for inner in op.walk()
        )

    def accesses(self) -> Iterator[LoadOp | StoreOp]:
        """The contiguous accesses."""
        for op in self.outer.body.block.walk():
            if isinstance(op, LoadOp | StoreOp) and self.is_contiguous(op):
                yield op

    def allows_vectors(self) -> bool:
        """Whether every op can be done for several elements in turn."""
        return all(self._is_allowed(op) for op in self.outer.body.block.walk())

    def allows_unrolling(self) -> bool:
        """Whether every op can be done for one element after the other, stored wherever it is."""
        return all(isinstance(op, StoreOp) or self._is_allowed(op) for op in self.outer.body.block.walk())

    def _is_allowed(self, op: Operation) -> bool:
        if isinstance(op, StoreOp):
            return self.is_contiguous(op)
        if isinstance(op, ReduceOp):
            return not any(extent in self.varying for extent in op.extents)
        if isinstance(op, scf.IfOp):
            return op.cond not in self.varying
        if isinstance(op, scf.ForOp):
            return not {op.lb, op.ub, op.step} & self.varying
        scalar = computes_a_number(op) or isinstance(op, LoadOp | YieldOp | scf.YieldOp)
        return scalar and not op.regions

    def guarded_load(self, op: Operation) -> LoadOp | None:
        """As the function of that name, where neighbouring iterations load neighbouring elements."""
        load = guarded_load(op)
        return load if load is not None and self.is_contiguous(load) else None

    def length(self, width: int) -> int:
        """Ops after unrolling."""
        return sum(width if self.differs(op) else 1 for op in self.outer.body.block.walk())


def guarded_load(op: Operation) -> LoadOp | None:
    """The load of `if condition { x = load; yield x } else { yield y }` with arithmetic on indices in front of it.

    Such a load needs no branch: its address is computed in any case.
    """
    if not isinstance(op, scf.IfOp) or len(op.results) != 1 or not op.false_region.blocks:
        return None
    *before, load, end = list(op.true_region.block.ops) if len(op.true_region.block.ops) > 1 else [None, None]
    simple = all(inner is not None and inner.dialect_name() == "arith" for inner in before)
    alone = len(op.false_region.block.ops) == 1
    if not isinstance(load, LoadOp) or end is None or not simple or not alone:
        return None
    return load if end.operands[0] is load.result else None


def vector_width(outer: ParallelOp, launches: Sequence[LaunchSizes], threads: float) -> int:
    """How many neighbouring iterations one thread may do; 1 where nothing is gained by more than one. With fewer than
    `threads` threads each does less.
    """
    loop = VectorLoop.of(outer)
    if not outer.extents or not loop.allows_vectors():
        return 1
    accesses = list(loop.accesses())
    if not any(isinstance(op, StoreOp) for op in accesses):
        return 1
    narrowest = min(_width(op) for op in accesses)
    width = MAX_ACCESS_BYTES // narrowest
    while width > 1:
        least = _MIN_ITERATIONS if width * narrowest <= 4 else max(_MIN_ITERATIONS, width * threads)
        if _fits(loop, accesses, launches, width, least):
            return width
        width //= 2
    return 1


def widths_of_team(outer: ParallelOp, launches: Sequence[LaunchSizes], team: int) -> dict[Operation, int]:
    """For the inner loops of rows that a team shares how many neighbours a member takes at once, where it is several.

    Rows are so long that each member goes through them several times all the same.
    """
    found: dict[Operation, int] = {}
    for op in outer.body.block.ops:
        if isinstance(op, ParallelOp | ReduceOp) and op.extents and launches:
            width = _width_of_team(VectorLoop.of(op), launches, team)
            if width > 1:
                found[op] = width
    return found


def _width_of_team(loop: VectorLoop, launches: Sequence[LaunchSizes], team: int) -> int:
    accesses, extents = list(loop.accesses()), loop.outer.extents
    if not accesses or not loop.allows_vectors():
        return 1
    width = MAX_ACCESS_BYTES // min(_width(op) for op in accesses)
    while width > 1 and not (
        loop.length(width) <= _MAX_OPS
        and all(has_aligned_rows(loop, op, width, launches) for op in accesses)
        and all(
            sizes.count(extents) is not None
            and sizes.guess(extents) >= _ROUNDS * team * width
            and sizes.is_multiple(extents[-1], width)
            and all(sizes.is_aligned(op.buffer, min(MAX_ACCESS_BYTES, width * _width(op))) for op in accesses)
            for sizes in launches
        )
    ):
        width //= 2
    return width


def _width(op: LoadOp | StoreOp) -> int:
    return byte_width(memory(op.buffer).get_element_type())


def _fits(
    loop: VectorLoop, accesses: Sequence[LoadOp | StoreOp], launches: Sequence[LaunchSizes], width: int, least: float
) -> bool:
    if loop.length(width) > _MAX_OPS or not launches:
        return False
    if not all(has_aligned_rows(loop, op, width, launches) for op in accesses):
        return False
    for sizes in launches:
        count = sizes.guess(loop.outer.extents)
        if not sizes.is_multiple(loop.outer.extents[-1], width) or sizes.count(loop.outer.extents) is None:
            return False
        if count < least:
            return False
        if not all(sizes.is_aligned(op.buffer, min(MAX_ACCESS_BYTES, width * _width(op))) for op in accesses):
            return False
    return True


def has_aligned_rows(loop: VectorLoop, op: LoadOp | StoreOp, width: int, launches: Sequence[LaunchSizes]) -> bool:
    """Whether every row starts at a multiple of the width, or of as much as an access moves."""
    step = min(width, MAX_ACCESS_BYTES // _width(op))
    return all(
        index is loop.last or all(sizes.is_multiple(stride, step) for sizes in launches)
        for index, stride in zip(op.indices, stride_values(op), strict=True)
    )
