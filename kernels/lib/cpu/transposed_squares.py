"""Squares of elements that are transposed in registers, for an operand that lies across what is written in memory.

for each task: for each square of it: load its columns as rows; what is done with each element of these
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32, i8, i16, i64
from xdsl.ir import Attribute

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.nest_words import Places
from mlirt.kernels.lib.language.tile_words import elements, load_transposed, tasks
from mlirt.kernels.lib.language.words import ceil_div, constant, place, static_range
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode

# Squares in a row of them that are one task.
_SQUARES = 32
# Shorter sides leave most of a square unused.
_MIN_SIDE = 8
# What elements that are only moved are loaded and stored as, by their bytes.
_MOVED = {1: i8, 2: i16, 4: f32, 8: i64}

# An element, the indices of its square, its row and its lane there.
Each = Callable[[Value, Sequence[Value], Value, Value], None]


def moved_as(element: Attribute) -> Attribute:
    """The type as which elements of a type are moved: their bits stay."""
    return _MOVED[byte_width(element)]


def cross_loop(nest: Nest, operand: int, shortest: int = _MIN_SIDE) -> int | None:
    """The loop along which an operand is contiguous, where the nest's last operand is so along the last loop.

    None where there is no such loop, or where a side is shorter than `shortest`.
    """
    if len(nest.extents) < 2 or nest.operands[-1].steps[-1] != 1 or nest.operands[operand].steps[-1] in (0, 1):
        return None
    loops = [loop for loop, step in enumerate(nest.operands[operand].steps) if step == 1]
    sides = [nest.extents[loop] for loop in (*loops, -1)]
    is_short = any(isinstance(side, int) and side < shortest for side in sides)
    return None if len(loops) != 1 or is_short else loops[0]


@dataclass(frozen=True)
class Lanes:
    """A loop over the lanes of a block, of which the last one may have too many: those are no channels.

    `block` is the dimension of the blocks, and `count` the number of channels. Lanes beyond are written as zeros.
    """

    loop: int
    block: int
    count: Dim


class TransposedSquares:
    """The loops of a kernel: an operand of a nest lies across the others, contiguous along the loop `cross`."""

    def __init__(
        self, code: NestCode, operand: int, cross: int, element: Attribute, target: Target, masked: Lanes | None = None
    ) -> None:
        self.code, self.operand, self.cross, self.last = code, operand, cross, len(code.nest.extents) - 1
        self.lanes = min(target.vector_bits // 32, target.vector_bits // (8 * byte_width(element)))
        self.masked = masked
        self.sides = {loop: code.nest.extents[loop] for loop in (cross, self.last)}
        self.sizes = {loop: code.builder.size(side) for loop, side in self.sides.items()}
        self.count = None if masked is None else code.builder.size(masked.count)

    @kernel
    def write(self, each: Each) -> None:
        """A task is a row of squares along the longer side; a worker's tasks walk the other side first, as neighbouring
        squares there share lines of memory.
        """
        extents, lanes, size = self.code.nest.extents, self.lanes, self.lanes * _SQUARES
        along, down = (self.cross, self.last) if self._is_one_square(self.last) else (self.last, self.cross)
        others = [loop for loop in range(len(extents)) if loop not in self.sides]
        steps = [] if self._is_one_square(down) else [ceil_div(extents[down], lanes)]
        for loops in tasks([*[extents[loop] for loop in others], ceil_div(extents[along], size), *steps]):
            outer, start = loops[: len(others)], loops[len(others)] * size
            across = loops[-1] * lanes if steps else place(0)
            for number in range(ceil_div(min(self.sizes[along] - start, size), lanes)):
                at = {**dict(zip(others, outer, strict=True)), down: across, along: start + number * lanes}
                self._square([at[loop] for loop in range(len(extents))], each)

    def _is_one_square(self, loop: int) -> bool:
        side = self.sides[loop]
        return isinstance(side, int) and side <= self.lanes

    @kernel
    def _square(self, at: Sequence[Value], each: Each) -> None:
        """A whole square, or the part of it that there is."""
        rows, valid = self._left(self.cross, at), self._left(self.last, at)
        if rows is None and valid is None:
            self._transpose(at, None, None, each)
        else:
            is_whole = (rows is None or rows >= self.lanes) and (valid is None or valid >= self.lanes)
            if is_whole:
                self._transpose(at, None, None, each)
            else:
                self._transpose(at, rows, valid, each)

    @kernel
    def _left(self, loop: int, at: Sequence[Value]) -> Value | None:
        """How many iterations of a side there are from a square on; None: surely enough."""
        side = self.sides[loop]
        if self.masked is not None and self.masked.loop == loop:
            assert self.count is not None
            return place(min(self.count - self.code.original(self.masked.block, at) * self.lanes, self.lanes))
        if isinstance(side, int) and side % self.lanes == 0:
            return None
        return self.sizes[loop] - at[loop]

    @kernel
    def _transpose(self, at: Sequence[Value], rows: Value | None, valid: Value | None, each: Each) -> None:
        code, operand = self.code, self.operand
        start, step = code.linear(operand, at), code.step(operand, self.last)
        square = load_transposed(code.pointer(operand), start, step, self.lanes, valid, rows)
        is_filled = self.masked is not None and self.masked.loop == self.last
        for element, row, _, lane in elements(square, rows, None if is_filled else valid):
            if is_filled and valid is not None:
                element = element if lane < valid else constant(0, element.type)
            each(element, at, row, lane)

    @kernel
    def move(self) -> None:
        """Copy the first operand to the other ones."""

        def each(element: Value, at: Sequence[Value], row: Value, lane: Value) -> None:
            for target in static_range(1, len(self.code.nest.operands)):
                self.code.store(element, target, at, self.places(target, row, lane))

        self.write(each)

    def places(self, operand: int, row: Value, lane: Value) -> Places:
        """How far an element of a square lies from its first one."""
        return [(row, self.code.step(operand, self.cross)), (lane, self.code.step(operand, self.last))]
