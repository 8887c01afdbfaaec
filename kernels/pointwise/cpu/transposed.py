"""A pointwise op with an operand that lies across its result, such as a transpose: squares of elements are transposed
in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.nest_words import Places
from mlirt.kernels.lib.language.tile_words import elements, load_transposed, tasks
from mlirt.kernels.lib.language.words import ceil_div, inline
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering
from mlirt.kernels.pointwise.generic import splat
from mlirt.kernels.pointwise.streams import flat_nest

OPS = (PointwiseOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20

# Squares in a row of them that are one task.
_SQUARES = 32
# Shorter sides leave most of a square unused.
_MIN_SIDE = 8


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
    nest = None if lane_axes(op.outputs[0].type) else flat_nest(op, lowering)
    transposed = None if nest is None else _transposed(nest)
    if nest is None or transposed is None:
        return False
    k = lowering.kernel("transposed")
    build(k, TransposedKernel(k, op, nest, transposed, lowering).write)
    k.finish(op)
    return True


def _transposed(nest: Nest) -> tuple[int, int] | None:
    """The operand that lies across the result, and the loop along which it is contiguous; None where not just one
    does.
    """
    *inputs, output = nest.operands
    if len(nest.extents) < 2 or output.steps[-1] != 1 or element_of(output.value.type) != f32:
        return None
    across = [number for number, one in enumerate(inputs) if one.steps[-1] not in (0, 1)]
    if len(across) != 1 or element_of(inputs[across[0]].value.type) != f32:
        return None
    loops = [loop for loop, step in enumerate(inputs[across[0]].steps) if step == 1]
    if len(loops) != 1 or any(_is_short(nest.extents[loop]) for loop in (loops[0], -1)):
        return None
    return across[0], loops[0]


def _is_short(extent: Dim) -> bool:
    return isinstance(extent, int) and extent < _MIN_SIDE


class TransposedKernel:
    """A kernel under construction.

    for each task: for each square of it: load its columns as rows; the body on each row, and its store
    """

    def __init__(
        self, k: KernelBuilder, op: PointwiseOp, nest: Nest, transposed: tuple[int, int], lowering: Lowering
    ) -> None:
        self.op, self.nest, self.code = op, nest, NestCode(k, nest)
        self.operand, self.cross = transposed
        self.lanes = lowering.target.vector_bits // 32
        self.numbers = [splat(k, value, lowering) for value in op.inputs]
        self.tall, self.wide = nest.extents[self.cross], nest.extents[-1]
        self.height, self.width = k.size(self.tall), k.size(self.wide)

    @kernel
    def write(self) -> None:
        """A worker's tasks walk the cross loop first: neighbouring squares there share lines of the operand."""
        lanes, size, last = self.lanes, self.lanes * _SQUARES, len(self.nest.extents) - 1
        others = [loop for loop in range(last) if loop != self.cross]
        extents = [self.nest.extents[loop] for loop in others]
        for *outer, chunk, down in tasks([*extents, ceil_div(self.wide, size), ceil_div(self.tall, lanes)]):
            at = {**dict(zip(others, outer, strict=True)), self.cross: down * lanes}
            before, start = [at[loop] for loop in range(last)], chunk * size
            for number in range(ceil_div(min(self.width - start, size), lanes)):
                self._square([*before, start + number * lanes])

    @kernel
    def _square(self, indices: Sequence[Value]) -> None:
        """A whole square, or the part of it that the result has."""
        if all([isinstance(side, int) and side % self.lanes == 0 for side in (self.tall, self.wide)]):
            self._transpose(indices, None, None)
        else:
            rows, valid = self.height - indices[self.cross], self.width - indices[-1]
            if rows >= self.lanes and valid >= self.lanes:
                self._transpose(indices, None, None)
            else:
                self._transpose(indices, rows, valid)

    @kernel
    def _transpose(self, indices: Sequence[Value], rows: Value | None, valid: Value | None) -> None:
        code, operand, output = self.code, self.operand, len(self.op.inputs)
        at, step = code.linear(operand, indices), code.step(operand, len(indices) - 1)
        square = load_transposed(code.pointer(operand), at, step, self.lanes, valid, rows)
        for element, row, _, lane in elements(square, rows, valid):
            inputs = [self._input(number, element, indices, row, lane) for number in range(output)]
            (value,) = inline(self.op.body, inputs, indices)
            code.store(value, output, indices, self._inside(output, row, lane))

    def _input(self, number: int, element: Value, indices: Sequence[Value], row: Value, lane: Value) -> Value:
        if number == self.operand:
            return element
        known = self.numbers[number]
        return self.code.load(number, indices, self._inside(number, row, lane)) if known is None else known

    def _inside(self, operand: int, row: Value, lane: Value) -> Places:
        """How far an element of the square lies from its first one."""
        last = len(self.nest.extents) - 1
        return [(row, self.code.step(operand, self.cross)), (lane, self.code.step(operand, last))]
