"""Floats into blocks of channels and out of them on a CPU: squares of channels by pixels are transposed in registers.

parallel (.., chunks of pixels) {
  for each square: load its rows of pixels, or its blocks of channels, as columns; store its rows
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, is_row_major, rank, row_length
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.tile_words import elements, load_transposed, tasks
from mlirt.kernels.lib.language.words import ceil_div, constant, place
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
    build(k, _Transposed(k, found, lowering).write)
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
        self.blocks, self.code = blocks, NestCode(k, blocks.nest)
        self.lanes = lowering.target.vector_bits // 32
        self.channel = k.stride(blocks.channel)
        self.pixels = k.size(blocks.nest.extents[-1])
        self.count = None if blocks.surplus is None else k.size(blocks.surplus)

    @kernel
    def write(self) -> None:
        lanes, size, (*extents, length) = self.lanes, self.lanes * _SQUARES, self.blocks.nest.extents
        for *outer, chunk in tasks([*extents, ceil_div(length, size)]):
            start, channels = chunk * size, None
            if self.count is not None:  # how many channels the block has
                channels = place(min(self.count - self.code.original(1, outer) * lanes, lanes))
            for number in range(ceil_div(min(self.pixels - start, size), lanes)):
                self._square([*outer, start + number * lanes], channels)

    @kernel
    def _square(self, at: Sequence[Value], channels: Value | None) -> None:
        """A whole square, or the part of it that there is."""
        pixels = self.pixels - at[-1]
        if pixels >= self.lanes and (channels is None or channels == self.lanes):
            self._transpose(at, None, None)
        else:
            self._transpose(at, channels, place(min(pixels, self.lanes)))

    @kernel
    def _transpose(self, at: Sequence[Value], channels: Value | None, pixels: Value | None) -> None:
        code, enters = self.code, self.blocks.enters
        source, target = (0, 1) if enters else (1, 0)
        step, across = (
            (self.channel, code.step(1, len(at) - 1)) if enters else (code.step(1, len(at) - 1), self.channel)
        )
        rows, valid = (channels, pixels) if enters else (pixels, None)
        square = load_transposed(code.pointer(source), code.linear(source, at), step, self.lanes, rows, valid)
        for element, row, _, lane in elements(square, *((pixels, None) if enters else (channels, pixels))):
            if enters and channels is not None:
                element = element if lane < channels else constant(0.0, f32)
            code.store(element, target, at, [(row, across), (lane, 1)])
