"""Normalisations of rows that no block can hold: the blocks of a cluster keep a row in their shared memory together.

A row is read once: each block copies its share of it, and each thread the elements that it works on. The reductions go
over shared memory, one after the other, and after each of them the blocks tell each other their totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i64
from xdsl.ir import Region, SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.gpu_architectures import CLUSTERS
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.layout import vector_width
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.warpgroups.group_product import fits_narrow
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.combine_words import combiner_of
from mlirt.kernels.lib.language.hopper_words import cluster_rank, remote_shared, sync_cluster
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    commit_copies,
    copy_async,
    element_at,
    fragment,
    load_fragment,
    shared_memory,
    store_fragment,
    sync_threads,
    thread_id,
    wait_for_copies,
)
from mlirt.kernels.lib.language.words import extent, place, static_range
from mlirt.kernels.lib.loops.loop_nest import Affine
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.normalization import Rows

OPS = (NormalizationOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 1  # before the general loops, which read a row once for each reduction, and once more

_THREADS = 512
_PARTS = (2, 4, 8)
_OTHER_BYTES = {2: 5 * 1024, 1: 7 * 1024}  # of shared memory beside a row, by the blocks of a processor
_PIECE, _MIN_PIECE = 16, 4  # bytes that are copied at once, at most and at least
_KINDS = (ReduceKind.ADD, ReduceKind.MAX)


def lower(op: NormalizationOp, lowering: Lowering) -> bool:
    plan = _plan(op, lowering)
    if plan is None:
        return False
    _ClusterRows(op, lowering, plan).write()
    return True


@dataclass(frozen=True)
class _Plan:
    """The `number` of the input that differs within a row, of so many elements; `wide` of them are accessed at once.

    A row is shared by `parts` blocks, each of which has a `share` or what is left.
    """

    number: int
    length: int
    wide: int
    parts: int

    @property
    def share(self) -> int:
        return -(-self.length // (self.parts * self.wide)) * self.wide


def _plan(op: NormalizationOp, lowering: Lowering) -> _Plan | None:
    """None where a row is short, does not fit a cluster or does not lie together, and where the device has none."""
    device, differ = lowering.target.gpu, [number for number in range(len(op.inputs)) if not op.is_whole_row(number)]
    if not lowering.target.has(CLUSTERS) or op.reduced.dims() or op.further or len(differ) != 1:
        return None
    if any(kind not in _KINDS or finish.block.args[0].type != f32 for kind, _, finish in op.reductions()):
        return None
    nest, border = Rows.nest_of(op, lowering)
    rows = [axis for axis, group in enumerate(nest.groups) if group[0] >= border]
    if len(rows) != 1 or rows != [len(nest.extents) - 1] or not isinstance(length := nest.extents[-1], int):
        return None
    given, result = nest.operands[differ[0]], nest.operands[-1]
    size = byte_width(element_of(given.value.type))
    if given.steps[-1] != 1 or result.steps[-1] != 1 or length <= device.registers:
        return None
    rows = typical(product(nest.extents[:-1]), typical_values(lowering.block))
    if rows <= device.clusters_of(_PARTS[-1]):
        return None  # the registers of a cluster each have them
    wide = min(_wide(one, length, lowering) for one in (given, result))
    limits = [device.shared_bytes_of(blocks) - other for blocks, other in _OTHER_BYTES.items()]
    parts = next((count for limit in limits for count in _PARTS if length * size <= count * limit), 0)
    return _Plan(differ[0], length, wide, parts) if parts and wide * size >= _MIN_PIECE else None


def _wide(one: Affine, length: int, lowering: Lowering) -> int:
    """Elements of a row that are so aligned that one access has them."""
    size = byte_width(element_of(one.value.type))
    places: list[Dim] = [lowering.placements[one.value].offset + one.offset * size, length * size]
    places += [step * size for step in one.steps[:-1]]
    return max(1, vector_width(_PIECE, *places) // size)


class _ClusterRows(Rows):
    """The kernel of one op."""

    def __init__(self, op: NormalizationOp, lowering: Lowering, plan: _Plan) -> None:
        super().__init__(op, lowering)
        self.plan = plan
        self.element = element_of(op.inputs[plan.number].type)

    def write(self) -> None:
        k, parts = self.k, self.plan.parts
        build(k, self._kernel)
        rows = product(self.outer)
        k.function.attributes["cluster"] = IntegerAttr(parts, i64)
        k.function.attributes["architecture"] = StringAttr(k.lowering.target.arch)
        if fits_narrow(k, self.op, rows * self.plan.length):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.finish(self.op, grid=[rows * parts, 1, 1], block=[_THREADS])

    @kernel
    def _kernel(self) -> None:
        """Copy; reduce, one after the other; compute the elements."""
        op, plan, code = self.op, self.plan, self.code
        thread, rank = thread_id(), cluster_rank()
        here = self._row(block_id() // plan.parts)
        first = rank * plan.share
        own = place(min(plan.length - first, plan.share))
        kept = shared_memory("row", plan.share, scalar_type(self.element))
        self._copy(kept, here, thread, first, own)
        known = [
            code.load(one, here) if op.is_whole_row(one) and self.is_used(one) else None
            for one in static_range(len(op.inputs))
        ]
        totals: list[SSAValue] = []
        for kind, element, finish in op.reductions():
            total = self._reduced(kind, element, kept, thread, own, known, totals)
            totals = [*totals, *self.inline(finish, [total], here, [], known, totals)]
        target = code.pointer(len(op.inputs))
        for number in range(self._rounds):
            at = (number * _THREADS + thread) * plan.wide
            if at < own:
                some = load_fragment(kept, at, Access(static_range(plan.wide), wide=plan.wide > 1))
                results = [self._at(op.body, element_at(some, i), known, totals) for i in static_range(plan.wide)]
                start = place(code.linear(len(op.inputs), [*here, first + at]))
                store_fragment(fragment(results), target, start, Access(static_range(plan.wide), wide=plan.wide > 1))
        sync_cluster()  # no block may end while another one reads its totals

    @property
    def _rounds(self) -> int:
        """How many pieces a thread has, at most."""
        return -(-self.plan.share // (self.plan.wide * _THREADS))

    @kernel
    def _row(self, row: Value) -> list[SSAValue]:
        """The indices of a row along the loops before it."""
        found = list[SSAValue]()
        for length in reversed(self.outer[: self.depth]):
            found = [row % extent(length), *found]
            row = row // extent(length)
        return found

    @kernel
    def _copy(self, kept: Value, here: Sequence[SSAValue], thread: Value, first: Value, own: Value) -> None:
        """Each thread copies the elements that it works on, all at once."""
        plan, code = self.plan, self.code
        source = code.pointer(plan.number)
        for number in range(self._rounds):
            at = (number * _THREADS + thread) * plan.wide
            if at < own:
                start = code.linear(plan.number, [*here, first + at])
                copy_async(source, start, kept, at, plan.wide)
        commit_copies()
        wait_for_copies(0)
        sync_threads()

    @kernel
    def _reduced(
        self,
        kind: ReduceKind,
        element: Region,
        kept: Value,
        thread: Value,
        own: Value,
        known: Sequence[SSAValue | None],
        totals: Sequence[SSAValue],
    ) -> Value:
        """What the elements of a row come to, in all of its blocks: always in the same order."""
        plan, combiner = self.plan, combiner_of(kind, f32)
        (total,) = combiner.neutral
        for number in range(self._rounds):
            at = (number * _THREADS + thread) * plan.wide
            if at < own:
                some = load_fragment(kept, at, Access(static_range(plan.wide), wide=plan.wide > 1))
                found = [self._at(element, element_at(some, i), known, totals) for i in static_range(plan.wide)]
                total = combiner.of(total, combiner.of(*[value_of(one) for one in found]))
        total = combiner.over_lanes(total, [1 << bit for bit in static_range(5)])
        warps = _THREADS // WARP
        of_warps = shared_memory("of_warps", warps, f32)
        of_block = shared_memory("of_block", 1, f32)
        if thread % WARP == 0:
            of_warps[thread // WARP] = total
        sync_threads()
        if thread == 0:
            of_block[0] = combiner.of(*[of_warps[warp] for warp in static_range(warps)])
        sync_cluster()
        return combiner.of(*[remote_shared(of_block, rank)[0] for rank in static_range(plan.parts)])

    def _at(
        self, region: Region, number: Value, known: Sequence[SSAValue | None], totals: Sequence[SSAValue]
    ) -> SSAValue:
        """A region at an element of the row."""
        given = [number if one == self.plan.number else value for one, value in enumerate(known)]
        (found,) = self.inline(region, [], [], [], given, totals)
        return found
