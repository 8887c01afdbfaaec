"""Computes a pointwise op inside of one that reads it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.locations import fuse
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.access_composition import compose
from mlirt.passes.fusion.scalar_bodies import prepend, prepend_moved

Consumer = PointwiseOp | ReductionOp


def iteration_space(op: Consumer) -> tuple[Dim, ...]:
    """The extents of the iteration dimensions of an op's inputs."""
    if isinstance(op, ReductionOp):
        return (*dims(op.output.type), *op.reduced.dims())
    return dims(op.outputs[0].type)


def absorb(producer: PointwiseOp, consumer: Consumer) -> None:
    """Replace the consumer's reads of the producer by the producer's own reads and a copy of its body."""
    share_operands(consumer)
    block, inputs, accesses = consumer.body.block, list(consumer.inputs), list(consumer.access)
    body = producer.body.block
    moves = producer.outputs[0].has_one_use() and not any(isinstance(op, IndexOp) for op in body.ops)
    for position in reversed(range(len(inputs))):
        if inputs[position].owner is not producer:
            continue
        read = accesses[position]
        added = [compose(access, read) for access in producer.access]
        arguments = [block.insert_arg(arg.type, len(block.args)) for arg in producer.body.block.args]
        value = (
            prepend_moved(block, body, arguments) if moves else prepend(block, producer.body, arguments, read.indices())
        )
        block.args[position].replace_all_uses_with(value)
        block.erase_arg(block.args[position])
        inputs[position : position + 1], accesses[position : position + 1] = [], []
        inputs += producer.inputs
        accesses += added
    set_inputs(consumer, inputs, accesses)
    consumer.location = fuse(producer, consumer)
    if producer.outputs[0].first_use is None:
        producer.detach()
        producer.erase(safe_erase=False)
    share_operands(consumer)


def share_operands(op: Consumer) -> None:
    """Let equal reads of one operand be one region argument."""
    pairs = list(zip(op.inputs, op.access, strict=True))
    if len(set(pairs)) == len(pairs):
        return
    block = op.body.block
    for position in reversed(range(len(pairs))):
        first = pairs.index(pairs[position])
        if first != position:
            block.args[position].replace_all_uses_with(block.args[first])
            block.erase_arg(block.args[position])
            del pairs[position]
    set_inputs(op, [value for value, _ in pairs], [access for _, access in pairs])


def set_inputs(op: Consumer, inputs: Sequence[SSAValue], accesses: Sequence[AccessAttr]) -> None:
    """Give an op other inputs; the caller has changed the region's arguments."""
    op.properties["access"] = ArrayAttr(accesses)
    if isinstance(op, ReductionOp):
        extras = list(op.extras)
        op.operands = [*inputs, *extras]
        op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(inputs), len(extras)])
    else:
        op.operands = list(inputs)
