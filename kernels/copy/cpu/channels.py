"""Channels of blocked images gathered into blocks on a CPU: where the lanes of a block come from is found once for many
pixels.

parallel (.., blocks, rows, chunks of pixels) {
  for each lane: place = the block of its channel and the lane there
  for each pixel: for each lane: y[pixel, lane] = x[pixel + place]
}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import channels, dims, element_of
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.tile_words import tasks
from mlirt.kernels.lib.language.words import extent, index_of, place, stride
from mlirt.kernels.lib.loops.block_lanes import surplus, zero
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (GatherOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Pixels of a block that are one task.
_CHUNK = 512


@dataclass(frozen=True)
class Lanes:
    """The blocks of the data; the lanes of a block of it, of one of the result, and of the last one those in use."""

    blocks: Dim
    source: int
    result: int
    last: int


def lower(op: GatherOp, lowering: Lowering) -> bool:
    """Only images whose channels lie in blocks on both sides."""
    if not is_blocked(op.data.type) or not is_blocked(op.output.type):
        return False
    count, source, result = channels(op.output.type), dims(op.data.type)[-1], dims(op.output.type)[-1]
    assert isinstance(count, int)
    assert isinstance(source, int)
    assert isinstance(result, int)
    data, target = whole(op.data, lowering), whole(op.output, lowering)
    steps = data.steps[-1], data.steps[1]
    source_steps = (data.steps[0], 0, *data.steps[2:-1])
    nest = Nest.of(
        dims(op.output.type)[:-1],
        [Affine(op.data, source_steps, data.offset), Affine(op.output, target.steps[:-1], target.offset)],
    )
    k = lowering.kernel("gather_channels")
    code = NestCode(k, _with_pixels(collapse(nest, frozenset({1}))))
    table = k.weights(
        lowering.packed(op.indices, partial(_table, _count(op), -(-count // result) * result)), "channels"
    )
    lanes = Lanes(
        dims(op.data.type)[1], source, result, count % result if surplus(op.output.type) is not None else result
    )
    build(k, _gathered, code, table, lanes, steps, value_of(zero(k, element_of(op.output.type))))
    k.finish(op)
    return True


def _with_pixels(nest: Nest) -> Nest:
    """The nest with a last loop over pixels, also where there is one of them only."""
    if nest.groups[-1] != (1,):
        return nest
    operands = tuple(replace(one, steps=(*one.steps, 0)) for one in nest.operands)
    return Nest((*nest.extents, 1), operands, (*nest.groups, ()))


def _count(op: GatherOp) -> int:
    count = channels(op.data.type)
    assert isinstance(count, int)
    return count


def _table(count: int, lanes: int, indices: Array) -> Array:
    """The channel of the data for each lane of the result, counted from 0; channel 0 where a lane is not in use."""
    import numpy as np

    found = np.zeros(lanes, np.int64)
    found[: indices.size] = indices % count
    return found


@kernel
def _gathered(code: NestCode, table: Value, lanes: Lanes, steps: tuple[Dim, Dim], nothing: Value) -> None:
    """`steps` lead to the next lane and to the next block of the data; lanes that are not in use are `nothing`."""
    last = extent((lanes.blocks - 1) * steps[1] + (lanes.source - 1) * steps[0])
    to_lane, to_block = stride(steps[0]), stride(steps[1])
    extents, x, y = code.nest.extents, code.pointer(0), code.pointer(1)

    def place_of(lane: Value) -> Value:
        """Where the data of a lane of the result lie, from the first channel of a pixel on."""
        channel = index_of(table[lane])
        block, within = channel // lanes.source, channel % lanes.source
        at = max(min(block * to_block + within * to_lane, last), 0)  # as it is, but now nothing can lie outside
        return place(at)

    pixels = extent(extents[-1])
    for *outer, chunk in tasks([*extents[:-1], ceil_div(extents[-1], _CHUNK)]):
        start = chunk * _CHUNK
        length = min(pixels - start, _CHUNK)
        block, blocks = code.original(1, outer), extent(extents[[1 in group for group in code.nest.groups].index(True)])
        is_last = block + 1 == blocks
        sources = [place_of(block * lanes.result + lane) for lane in range(lanes.result)]
        for pixel in range(length):
            at = [*outer, start + pixel]
            first, to = code.linear(0, at), code.linear(1, at)
            found = [x[first + source] for source in sources]
            for lane, value in enumerate(found):
                y[to + lane] = nothing if lane >= lanes.last and is_last else value
