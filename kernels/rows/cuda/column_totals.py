"""Reductions across memory on a GPU: a block has some neighbouring columns, and its threads share out each of them.

each thread: combine every `along`-th element of a column
for half of the threads of a column, then half of these, and so on {
  combine what the thread has with what one of the other half has; wait
}
the first thread of each column: the epilogue, and the store
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.typical_sizes import typical_values
from mlirt.kernels.lib.column_blocks import ColumnBlocks, column_blocks
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.epilogue import extra_operands, store_finished
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.combine_words import Combiner, combiner_of
from mlirt.kernels.lib.language.simt_words import block_id, shared_memory, sync_threads, thread_id
from mlirt.kernels.lib.language.words import ceil_div, clamp, extent, inline, split, static_range
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ReductionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10


def lower(op: ReductionOp, lowering: Lowering) -> bool:
    plan = column_blocks(op, typical_values(lowering.block), lowering.target.gpu)
    if plan is None or indices_in(op.body) or indices_in(op.epilogue):
        return False
    nest, border = _nest(op, lowering)
    outer = [size for size, group in zip(nest.extents, nest.groups, strict=True) if group[0] < border]
    if not outer or any(one.steps[len(outer) - 1] not in (0, 1) for one in nest.operands[: len(op.inputs)]):
        return False
    k = lowering.kernel("reduction")
    blocks = ceil_div(outer[-1], plan.across)
    build(k, _totals, op, NestCode(k, nest), border, plan, blocks)
    k.finish(op, grid=[product([*outer[:-1], blocks]), 1, 1], block=[max(WARP, plan.across * plan.along)])
    return True


def _nest(op: ReductionOp, lowering: Lowering) -> tuple[Nest, int]:
    """The results with what lies side by side in the first input last, around what is reduced; and their dimensions."""
    reduced, border = op.reduced.dims(), rank(op.output.type)
    width, places = border + len(reduced), lowering.placements
    inputs = [affine(value, places[value], one, width) for value, one in zip(op.inputs, op.access, strict=True)]
    kept = (*extra_operands(op, places), whole(op.output, lowering))
    others = [Affine(one.value, (*one.steps, *(0,) * len(reduced)), one.offset) for one in kept]
    nest = Nest.of([*dims(op.output.type), *reduced], [*inputs, *others])
    return collapse(nest.ordered(0, 0, border).ordered(0, border), frozenset({border})), border


@kernel
def _totals(op: ReductionOp, code: NestCode, border: int, plan: ColumnBlocks, blocks: Dim) -> None:
    """`for the columns of a block: combine what each thread of a column comes to; epilogue; store`."""
    type_, (outer, inner) = accumulator_type(op.epilogue), code.split(border)
    *others, of_block = split(block_id(), [*outer[:-1], blocks])
    thread, combiner = thread_id(), combiner_of(op.kind.data, type_)
    across, along = thread % plan.across, thread // plan.across
    column = of_block * plan.across + across
    exists = None if is_multiple(outer[-1], plan.across) else column < extent(outer[-1])
    here = [*others, column if exists is None else clamp(column, extent(outer[-1]))]
    shared = shared_memory("totals", plan.across * plan.along, scalar_type(type_))
    shared[thread] = _of_thread(op, code, here, along, plan, inner, combiner)
    sync_threads()
    for bit in static_range(plan.along.bit_length() - 1):
        half = plan.along >> (bit + 1)
        if along < half:
            shared[thread] = combiner.of(shared[thread], shared[thread + half * plan.across])
        sync_threads()
    if along == 0 and (exists is None or exists):
        store_finished(op.epilogue, code, len(op.inputs), shared[across], here)


@kernel
def _of_thread(
    op: ReductionOp,
    code: NestCode,
    here: Sequence[Value],
    along: Value,
    plan: ColumnBlocks,
    inner: Sequence[Dim],
    combiner: Combiner,
) -> Value:
    """What every `along`-th element of a column comes to, from that of a thread on."""
    count = (extent(product(inner)) - 1 - along) // plan.along + 1
    (total,) = combiner.neutral
    for number in range(count):
        at = [*here, *split(along + number * plan.along, inner)]
        scalars = [code.load(one, at) for one in static_range(len(op.inputs))]
        total = combiner.of(total, inline(op.body, scalars)[0])
    return total
