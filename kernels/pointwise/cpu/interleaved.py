"""A pointwise op whose result has a few neighbours that lie far apart in an operand, such as pixels from channels: a
row of each is walked, and their elements are interleaved.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.tile_words import tasks
from mlirt.kernels.lib.language.words import ceil_div, extent, inline, place, static_range
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.pointwise.generic import splat
from mlirt.kernels.pointwise.streams import flat_nest

OPS = (PointwiseOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 15

# As many neighbours are written one after the other; more of them fill a vector.
_MAX_NEIGHBOURS = 7
# Steps along a row that are one task.
_CHUNK = 256


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
    nest = None if lane_axes(op.outputs[0].type) else flat_nest(op, lowering)
    row = None if nest is None else _row(nest)
    if nest is None or row is None:
        return False
    k = lowering.kernel("interleaved")
    code = NestCode(k, nest)
    build(k, _interleaved, op, code, row, [splat(k, value, lowering) for value in op.inputs])
    k.finish(op)
    return True


def _row(nest: Nest) -> int | None:
    """The loop that goes from a group of neighbours to the next one; None where an operand has them side by side."""
    *inputs, output = nest.operands
    count = nest.extents[-1] if nest.extents else 1
    if not isinstance(count, int) or not 1 < count <= _MAX_NEIGHBOURS or output.steps[-1] != 1:
        return None
    if all(one.steps[-1] in (0, 1) for one in inputs):
        return None
    rows = [loop for loop, step in enumerate(output.steps[:-1]) if step == count]
    return rows[0] if len(rows) == 1 else None


@kernel
def _interleaved(op: PointwiseOp, code: NestCode, row: int, numbers: Sequence[Value | None]) -> None:
    """`for each d.. and chunk: for each step along the row: for each neighbour: y = body(x..)`."""
    *extents, count = code.nest.extents
    assert isinstance(count, int)
    others = [loop for loop in range(len(extents)) if loop != row]
    sizes = [*[extent(extents[loop]) for loop in others], extent(ceil_div(extents[row], _CHUNK))]
    length = extent(extents[row])
    for *outer, chunk in tasks(sizes):
        start = chunk * _CHUNK
        for step in range(min(length - start, _CHUNK)):
            at = {**dict(zip(others, outer, strict=True)), row: start + step}
            for neighbour in static_range(count):
                indices = [*[at[loop] for loop in range(len(extents))], place(neighbour)]
                scalars = [code.load(one, indices) if number is None else number for one, number in enumerate(numbers)]
                (value,) = inline(op.body, scalars, indices)
                code.store(value, len(numbers), indices)
