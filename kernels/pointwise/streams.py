"""A pointwise op as a nest of few loops, and where the elements of its operands lie along them."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, row_length
from mlirt.kernels.lib.loops.loop_nest import Nest, affine, collapse, direct
from mlirt.kernels.lib.loops.stream import Stream, stream
from mlirt.kernels.lib.tactics.lowering import Lowering


def streams_of(op: Operation, lowering: Lowering) -> tuple[tuple[Dim, ...], list[Stream]] | None:
    """The lengths of the loops, the last one along the result's memory, and the streams of the operands and the result.

    None for an op that has several results or asks for positions.
    """
    assert isinstance(op, PointwiseOp)
    nest = None if row_length(op.outputs[0].type) else flat_nest(op, lowering)
    return None if nest is None else (nest.extents, [stream(one, lowering) for one in nest.operands])


def flat_nest(op: PointwiseOp, lowering: Lowering) -> Nest | None:
    """The loops over the operands and the result, as few as can be, the last one along the result's memory.

    None for an op that has several results or asks for positions.
    """
    if len(op.outputs) != 1 or any(isinstance(inner, IndexOp) for inner in op.body.block.ops):
        return None
    (output,), places = op.outputs, lowering.placements
    space = dims(output.type)
    operands = [affine(value, places[value], one, len(space)) for value, one in zip(op.inputs, op.access, strict=True)]
    return collapse(Nest.of(space, [*operands, direct(output, places[output])]).ordered(-1))


__all__ = ["flat_nest", "stream", "streams_of"]
