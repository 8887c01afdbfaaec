"""A pointwise op with operands that lie across its result in memory: blocks turn tiles around in shared memory."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.tensor_types import byte_width, dims, element_of, row_length
from mlirt.passes.lowering.loop_nest import Affine, Nest, affine, collapse, direct
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.pointwise.generic import splat
from mlirt.passes.lowering.turned_plan import THREADS, Stream, find
from mlirt.passes.lowering.turned_tiles import TurnedTiles

OPS = (PointwiseOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, PointwiseOp)
    if len(op.outputs) != 1 or row_length(op.outputs[0].type):
        return False
    if any(isinstance(inner, IndexOp) for inner in op.body.block.ops):
        return False
    space, places, output = dims(op.outputs[0].type), lowering.placements, op.outputs[0]
    operands = [affine(value, places[value], one, len(space)) for value, one in zip(op.inputs, op.access, strict=True)]
    nest = collapse(Nest.of(space, [*operands, direct(output, places[output])]).ordered(-1))
    *inputs, result = [stream(one, lowering) for one in nest.operands]
    plan = find(nest.extents, inputs, result)
    if plan is None:
        return False
    k = lowering.kernel("pointwise")
    numbers = [splat(k, value, lowering) for value in op.inputs]

    def body(scalars: list[SSAValue]) -> SSAValue:
        return k.inline(op.body, scalars, [])[0]

    TurnedTiles(k, plan, numbers).write(body)
    k.finish(op, grid=[plan.blocks, 1, 1], block=[THREADS])
    return True


def stream(one: Affine, lowering: Lowering) -> Stream:
    """Where the elements of an access lie."""
    place, element = lowering.placements[one.value], element_of(one.value.type)
    return Stream(place.buffer, element, place.offset + one.offset * byte_width(element), one.steps)
