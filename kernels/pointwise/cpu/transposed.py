"""A pointwise op with an operand that lies across its result, such as a transpose: squares of elements are transposed
in registers.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr, f32
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.kernel.core import ParallelOp, YieldOp
from mlirt.dialects.kernel.tile import TileForEachOp
from mlirt.dialects.kernel.tile_loads import TileLoadTransposedOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.lib.builder.kernel_builder import Stride
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
    TransposedKernel(k, op, nest, transposed, lowering).write()
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
        self.k, self.op, self.nest = k, op, nest
        self.operand, self.cross = transposed
        self.code = NestCode(k, nest)
        self.lanes = lowering.target.vector_bits // 32
        self.numbers = [splat(k, value, lowering) for value in op.inputs]
        self.tall, self.wide = nest.extents[self.cross], nest.extents[-1]
        self.height, self.width = k.size(self.tall), k.size(self.wide)

    def write(self) -> None:
        """A worker's tasks walk the cross loop first: neighbouring squares there share lines of the operand."""
        k, lanes = self.k, self.lanes
        others = [loop for loop in range(len(self.nest.extents) - 1) if loop != self.cross]
        extents = [self.nest.extents[loop] for loop in others]
        extents += [ceil_div(self.wide, lanes * _SQUARES), ceil_div(self.tall, lanes)]
        tasks = ParallelOp([k.size(extent) for extent in extents])
        tasks.attributes["workers"] = UnitAttr()
        with k.inside(tasks.body.block):
            *outer, chunk, down = tasks.body.block.args
            indices: list[SSAValue] = [k.constant(0)] * len(self.nest.extents)
            for loop, index in zip(others, outer, strict=True):
                indices[loop] = index
            indices[self.cross] = k.mul(down, lanes)
            start = k.mul(chunk, lanes * _SQUARES)
            count = k.ceil_div(k.min(k.sub(self.width, start), lanes * _SQUARES), lanes)

            def square(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                self._square([*indices[:-1], k.add(start, k.mul(number, lanes))])
                return []

            k.loop(count, [], square)
            k.insert(YieldOp(operands=[[]]))
        k.insert(tasks)

    def _square(self, indices: list[SSAValue]) -> None:
        """A whole square, or the part of it that the result has."""
        k, lanes = self.k, self.lanes
        if all(isinstance(side, int) and side % lanes == 0 for side in (self.tall, self.wide)):
            self._transpose(indices, None, None)
            return
        rows, valid = k.sub(self.height, indices[self.cross]), k.sub(self.width, indices[-1])
        whole, part = Block(), Block()
        for block, limits in ((whole, (None, None)), (part, (rows, valid))):
            with k.inside(block):
                self._transpose(indices, *limits)
                k.insert(scf.YieldOp())
        is_whole = k.value(arith.AndIOp(k.compare("sge", rows, lanes), k.compare("sge", valid, lanes)))
        k.insert(scf.IfOp(is_whole, [], Region(whole), Region(part)))

    def _transpose(self, indices: list[SSAValue], rows: SSAValue | None, valid: SSAValue | None) -> None:
        k, code = self.k, self.code
        one = self.nest.operands[self.operand]
        places, steps = code.address(self.operand, indices)
        at = k.constant(0)
        for index, step in zip(places, steps, strict=True):
            at = k.add(at, k.mul(index, step))
        load = TileLoadTransposedOp(k.buffer(one.value, one.offset), at, k.index(steps[-1]), self.lanes, valid, rows)
        each = TileForEachOp(k.value(load), rows, valid)
        element, row, _, lane = each.body.block.args
        with k.inside(each.body.block):
            inputs = [self._input(number, element, indices, row, lane) for number in range(len(self.op.inputs))]
            (value,) = k.inline(self.op.body, inputs, indices)
            output = len(self.op.inputs)
            code.store(value, output, indices, self._inside(output, row, lane))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)

    def _input(
        self, number: int, element: SSAValue, indices: list[SSAValue], row: SSAValue, lane: SSAValue
    ) -> SSAValue:
        if number == self.operand:
            return element
        known = self.numbers[number]
        return self.code.load(number, indices, self._inside(number, row, lane)) if known is None else known

    def _inside(self, operand: int, row: SSAValue, lane: SSAValue) -> list[tuple[SSAValue, Stride]]:
        """How far an element of the square lies from its first one."""
        _, steps = self.code.address(operand, [row] * len(self.nest.extents))
        return [(row, steps[self.cross]), (lane, steps[-1])]
