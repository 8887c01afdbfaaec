"""Poolings whose input has its channels innermost and whose results are planes: no launch reorders them behind.

Blocks transpose tiles in shared memory, one for each tap of the windows, as of the operands of a pointwise op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims, row_length
from mlirt.kernels.lib.cuda.transposition.transposed_plan import THREADS, find
from mlirt.kernels.lib.cuda.transposition.transposed_tiles import TransposedTiles
from mlirt.kernels.lib.epilogue import extra_operands
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.words import inline
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.loops.stream import stream
from mlirt.kernels.lib.pooled_planes import has_tiles
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.combination import Combination
from mlirt.kernels.window.generic import mean

OPS = (WindowOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 30


def lower(op: WindowOp, lowering: Lowering) -> bool:
    if not has_tiles(op) or indices_in(op.epilogue) or row_length(op.output.type):
        return False
    result = whole(op.output, lowering)
    operands = [*_taps(op, lowering), *extra_operands(op, lowering.placements), result]
    nest = collapse(Nest.of(dims(op.output.type), operands).ordered(-1))
    *inputs, output = (stream(one, lowering) for one in nest.operands)
    plan = find(nest.extents, inputs, output)
    if plan is None or not set(range(prod(integers(op.window)))) <= set(plan.transposed):
        return False
    k = lowering.kernel("window")
    parts = Combination(k, op)
    build(k, TransposedTiles(k, plan).write, lambda scalars: _window(op, parts, scalars))
    k.finish(op, grid=[plan.blocks, 1, 1], block=[THREADS])
    return True


def _taps(op: WindowOp, lowering: Lowering) -> Iterator[Affine]:
    """The cells that each tap of the windows meets, over the results."""
    cells, strides = whole(op.input, lowering), dict(zip(op.axes(), integers(op.stride), strict=True))
    steps = tuple(step * strides.get(axis, 1) for axis, step in enumerate(cells.steps))
    apart = [cells.steps[axis] * dilation for axis, dilation in zip(op.axes(), integers(op.dilation), strict=True)]
    for taps in product(*map(range, integers(op.window))):
        offset = cells.offset
        for tap, step in zip(taps, apart, strict=True):
            offset = offset + step * tap
        yield Affine(op.input, steps, offset)


@kernel
def _window(op: WindowOp, parts: Combination, scalars: Sequence[Value]) -> Value:
    """One result of the cells of its window and of the extra operands."""
    count = prod(integers(op.window))
    total = parts.total(parts.of(*[parts.part(one) for one in scalars[:count]]))
    if op.kind.data is WindowKind.AVERAGE:
        total = mean(total, [count], accumulator_type(op.epilogue))
    return inline(op.epilogue, [total, *scalars[count:]])[0]
