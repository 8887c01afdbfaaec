"""Channels of blocked images gathered into blocks on a CPU: where the lanes of a block come from is found once for many
pixels.

parallel (.., blocks, rows, chunks of pixels) {
  for each lane: place = the block of its channel and the lane there
  for each pixel: for each lane: y[pixel, lane] = x[pixel + place]
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import SSAValue

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, StoreOp, YieldOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import channels, dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
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
    _Channels(k, code, table, lanes, steps).write(zero(k, element_of(op.output.type)))
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


class _Channels:
    """The kernel of one gather; `steps` lead to the next lane and to the next block of the data."""

    def __init__(
        self,
        k: KernelBuilder,
        code: NestCode,
        table: SSAValue,
        lanes: Lanes,
        steps: tuple[Dim, Dim],
    ) -> None:
        self.k, self.code, self.table, self.lanes = k, code, table, lanes
        self.last = k.size((lanes.blocks - 1) * steps[1] + (lanes.source - 1) * steps[0])
        self.steps: tuple[Stride, Stride] = (k.stride(steps[0]), k.stride(steps[1]))

    def write(self, nothing: SSAValue) -> None:
        k, extents = self.k, self.code.nest.extents
        pixels = k.size(extents[-1])
        tasks = ParallelOp([*(k.size(extent) for extent in extents[:-1]), k.size(ceil_div(extents[-1], _CHUNK))])
        tasks.attributes["workers"] = UnitAttr()
        blocks = k.size(extents[[1 in group for group in self.code.nest.groups].index(True)])
        with k.inside(tasks.body.block):
            *outer, chunk = tasks.body.block.args
            start = k.named(k.mul(chunk, _CHUNK), "start")
            length = k.named(k.min(k.sub(pixels, start), _CHUNK), "length")
            block = self.code.original(1, outer)
            is_last = k.compare("eq", k.add(block, 1), blocks)
            places = [self._place(k.add(k.mul(block, self.lanes.result), lane)) for lane in range(self.lanes.result)]

            def pixel(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                self._pixel([*outer, k.add(start, number)], places, is_last, nothing)
                return []

            k.loop(length, [], pixel, ["pixel"])
            k.insert(YieldOp(operands=[[]]))
        k.insert(tasks)

    def _pixel(self, at: Sequence[SSAValue], places: Sequence[SSAValue], is_last: SSAValue, nothing: SSAValue) -> None:
        """The lanes of a pixel; those of the last block that are not in use are zero."""
        k, pointer = self.k, self.code.pointer(0)
        first, to = self.code.linear(0, at), self.code.linear(1, at)
        found = [k.value(LoadOp(pointer, [k.add(first, place)], [1])) for place in places]
        for lane, value in enumerate(found):
            kept = value if lane < self.lanes.last else k.select(is_last, nothing, value)
            k.insert(StoreOp(kept, self.code.pointer(1), [k.add(to, lane)], [1]))

    def _place(self, lane: SSAValue) -> SSAValue:
        """Where the data of a lane of the result lie, from the first channel of a pixel on."""
        k = self.k
        channel = k.value(IndexCastOp(k.value(LoadOp(self.table, [lane], [1])), IndexType()))
        block, within = k.div(channel, self.lanes.source), k.rem(channel, self.lanes.source)
        place = k.add(k.mul(block, self.steps[1]), k.mul(within, self.steps[0]))
        return k.named(k.max(k.min(place, self.last), 0), "place")  # as it is, but now nothing can lie outside
