"""Floats into blocks of channels and out of them on a CPU: squares of channels by pixels are transposed in registers.

parallel (.., chunks of pixels) {
  for each square: load its rows of pixels, or its blocks of channels, as columns; store its rows
}
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr, f32
from xdsl.ir import SSAValue

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.kernel.core import ParallelOp, YieldOp
from mlirt.dialects.kernel.tile import TileForEachOp
from mlirt.dialects.kernel.tile_loads import TileLoadTransposedOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import dims, element_of, is_row_major, rank, row_length
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.block_lanes import surplus
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ReformatOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Squares along a row of pixels that are one task.
_SQUARES = 8


@dataclass(frozen=True)
class Blocks:
    """Loops over blocks of channels and pixels, the last one along pixels that lie side by side in the plain tensor.

    `channel` is the distance of channels there; `surplus` their number where not all blocks are full.
    """

    nest: Nest
    enters: bool
    channel: Dim
    surplus: Dim | None


def lower(op: ReformatOp, lowering: Lowering) -> bool:
    found = _blocks(op, lowering)
    if found is None:
        return False
    k = lowering.kernel("reformat_transposed")
    _Transposed(k, found, lowering).write()
    k.finish(op)
    return True


def _blocks(op: ReformatOp, lowering: Lowering) -> Blocks | None:
    """The blocks that a copy fills or empties; None for other copies, and for elements that no square can hold."""
    enters = is_blocked(op.output.type)
    plain, blocks = (op.input, op.output) if enters else (op.output, op.input)
    lanes = lowering.target.vector_bits // 32
    fits = is_blocked(blocks.type) and not is_blocked(plain.type) and rank(plain.type) == rank(blocks.type) - 1
    if not fits or element_of(plain.type) != f32 or dims(blocks.type)[-1] != lanes:
        return None
    if not is_row_major(plain.type) or row_length(plain.type) or row_length(blocks.type):
        return None
    steps = list(whole(plain, lowering).steps)
    channel, steps[1] = steps[1], steps[1] * lanes
    count = surplus(blocks.type)
    nest = Nest.of(
        dims(blocks.type)[:-1], [Affine(plain, tuple(steps)), Affine(blocks, whole(blocks, lowering).steps[:-1])]
    )
    nest = collapse(nest, frozenset({1}) if count is not None else frozenset())
    if not nest.extents or nest.operands[0].steps[-1] != 1 or nest.groups[-1] == (1,):
        return None
    return Blocks(nest, enters, channel, count)


class _Transposed:
    """The kernel of one copy."""

    def __init__(self, k: KernelBuilder, blocks: Blocks, lowering: Lowering) -> None:
        self.k, self.blocks, self.nest = k, blocks, blocks.nest
        self.code = NestCode(k, blocks.nest)
        self.lanes = lowering.target.vector_bits // 32
        self.channel = k.stride(blocks.channel)
        self.pixels = k.size(blocks.nest.extents[-1])
        self.count = None if blocks.surplus is None else k.size(blocks.surplus)

    def write(self) -> None:
        k, size = self.k, self.lanes * _SQUARES
        extents = [k.size(extent) for extent in self.nest.extents[:-1]]
        tasks = ParallelOp([*extents, k.size(ceil_div(self.nest.extents[-1], size))])
        tasks.attributes["workers"] = UnitAttr()
        with k.inside(tasks.body.block):
            *outer, chunk = tasks.body.block.args
            start = k.mul(chunk, size)
            left = None if self.count is None else self._channels_left(self.count, list(outer))

            def square(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                self._square([*outer, k.add(start, k.mul(number, self.lanes))], left)
                return []

            k.loop(k.ceil_div(k.min(k.sub(self.pixels, start), size), self.lanes), [], square)
            k.insert(YieldOp(operands=[[]]))
        k.insert(tasks)

    def _channels_left(self, count: SSAValue, outer: list[SSAValue]) -> SSAValue:
        """How many channels a block has."""
        k, block = self.k, self.code.original(1, outer)
        return k.min(k.sub(count, k.mul(block, self.lanes)), self.lanes)

    def _square(self, at: list[SSAValue], channels: SSAValue | None) -> None:
        """A whole square, or the part of it that there is."""
        k = self.k
        pixels = k.sub(self.pixels, at[-1])
        fits = k.compare("sge", pixels, self.lanes)
        if channels is not None:
            fits = k.value(arith.AndIOp(fits, k.compare("eq", channels, self.lanes)))
        k.either(
            fits,
            lambda: self._transpose(at, None, None),
            lambda: self._transpose(at, channels, k.min(pixels, self.lanes)),
        )

    def _transpose(self, at: list[SSAValue], channels: SSAValue | None, pixels: SSAValue | None) -> None:
        k, enters = self.k, self.blocks.enters
        source, target = (0, 1) if enters else (1, 0)
        step = k.index(self.channel if enters else self.code.step(1, len(at) - 1))
        rows, valid = (channels, pixels) if enters else (pixels, None)
        load = TileLoadTransposedOp(
            self.code.pointer(source), self.code.linear(source, at), step, self.lanes, rows, valid
        )
        each = TileForEachOp(k.value(load), *((pixels, None) if enters else (channels, pixels)))
        element, row, _, lane = each.body.block.args
        with k.inside(each.body.block):
            if enters and channels is not None:
                element = k.select(k.compare("slt", lane, channels), element, k.constant(0.0, f32))
            across = self.code.step(1, len(at) - 1) if enters else self.channel
            self.code.store(element, target, at, [(row, across), (lane, 1)])
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)
