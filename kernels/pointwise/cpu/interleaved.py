"""A pointwise op whose result has a few neighbours that lie far apart in an operand, such as pixels from channels: a
row of each is walked, and their elements are interleaved.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.kernel.core import ParallelOp, YieldOp
from mlirt.dialects.symbolic import ceil_div
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering
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
    """`parallel (d.., chunks) { for step along the row: for each neighbour: load; the body; store }`."""
    nest = None if lane_axes(op.outputs[0].type) else flat_nest(op, lowering)
    row = None if nest is None else _row(nest)
    if nest is None or row is None:
        return False
    k = lowering.kernel("interleaved")
    _write(k, op, nest, row, [splat(k, value, lowering) for value in op.inputs])
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


def _write(k: KernelBuilder, op: PointwiseOp, nest: Nest, row: int, numbers: list[SSAValue | None]) -> None:
    code, count, last = NestCode(k, nest), nest.extents[-1], len(nest.extents) - 1
    assert isinstance(count, int)
    others = [loop for loop in range(last) if loop != row]
    tasks = ParallelOp([k.size(nest.extents[loop]) for loop in others] + [k.size(ceil_div(nest.extents[row], _CHUNK))])
    tasks.attributes["workers"] = UnitAttr()
    length = k.size(nest.extents[row])
    with k.inside(tasks.body.block):
        *outer, chunk = tasks.body.block.args
        start = k.mul(chunk, _CHUNK)
        indices: list[SSAValue] = [k.constant(0)] * (last + 1)
        for loop, index in zip(others, outer, strict=True):
            indices[loop] = index

        def interleave(step: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            for neighbour in range(count):
                indices[row], indices[last] = k.add(start, step), k.constant(neighbour)
                scalars = [
                    code.load(number, indices) if known is None else known for number, known in enumerate(numbers)
                ]
                (value,) = k.inline(op.body, scalars, indices)
                code.store(value, len(numbers), indices)
            return []

        k.loop(k.min(k.sub(length, start), _CHUNK), [], interleave)
        k.insert(YieldOp(operands=[[]]))
    k.insert(tasks)
