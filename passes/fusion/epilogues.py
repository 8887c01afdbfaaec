"""Epilogue fusion: a pointwise op becomes the epilogue of the accumulating op before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, is_elementwise
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.scalar_bodies import append, tidy
from mlirt.passes.rules import op, some

# The operands of each op before its extras, as `build` wants them, and the property that holds the extras' accesses.
_SHAPES: dict[type[Operation], tuple[Callable[[Operation], list[SSAValue | Sequence[SSAValue]]], str]] = {
    ConvolutionOp: (lambda one: list(one.operands[:2]), "access"),
    MatmulOp: (lambda one: list(one.operands[:2]), "access"),
    PackedMatmulOp: (lambda one: list(one.operands[:4]), "access"),
    WindowOp: (lambda one: list(one.operands[:1]), "access"),
    ReductionOp: (lambda one: [list(_reduction(one).inputs)], "extra_access"),
}

Accumulating = ConvolutionOp | MatmulOp | PackedMatmulOp | WindowOp | ReductionOp


def _reduction(found: Operation) -> ReductionOp:
    assert isinstance(found, ReductionOp)
    return found


FUSIBLE = op(
    PointwiseOp,
    inputs=some(
        op(Accumulating).named("producer").missing("it reads no result of a convolution, product, window or reduction")
    ),
).named("consumer")
"""A pointwise op and one of those whose epilogue it may be."""


def reads_elements(reader: Operation, value: SSAValue) -> TypeGuard[PointwiseOp]:
    """Whether an op computes its only result of those of `value`, element by element, and of nothing else."""
    if not isinstance(reader, PointwiseOp) or len(reader.outputs) != 1 or reader.parent is not value.owner.parent:
        return False
    shape = dims(value.type)
    reads = zip(reader.inputs, reader.access, strict=True)
    same = all(read is value and is_elementwise(access, shape) for read, access in reads)
    placed = any(isinstance(inner, IndexOp) for inner in reader.body.block.ops)
    return same and not placed and dims(reader.outputs[0].type) == shape


def producer_of(consumer: PointwiseOp, value: SSAValue) -> Accumulating | None:
    """The accumulating op that computes `value` for this consumer alone, element by element; None for other values."""
    producer = value.owner
    if not isinstance(producer, Accumulating) or epilogue_obstacle(consumer, producer) is not None:
        return None
    return producer


def epilogue_obstacle(consumer: PointwiseOp, producer: Accumulating) -> str | None:
    """Why a pointwise op cannot end the op that computes what it reads, which is `{producer}`; None where it can."""
    value = producer.results[0]
    if producer.parent is not consumer.parent:
        return "{producer} is in another block"
    if len(consumer.outputs) != 1:
        return "it has several results"
    if {use.operation for use in value.uses} != {consumer}:
        return "{producer} has other readers"
    if "pooling" in producer.properties:
        return "{producer} pools its results"
    shape = dims(value.type)
    reads = [access for other, access in zip(consumer.inputs, consumer.access, strict=True) if other is value]
    in_place = shape == dims(consumer.outputs[0].type) and all(is_elementwise(access, shape) for access in reads)
    return None if in_place else "it does not read {producer} element by element"


def extras_of(consumer: PointwiseOp, value: SSAValue) -> list[tuple[SSAValue, AccessAttr]]:
    """What the consumer reads besides `value`."""
    return [pair for pair in zip(consumer.inputs, consumer.access, strict=True) if pair[0] is not value]


def with_epilogue(producer: Accumulating, consumer: PointwiseOp) -> Accumulating:
    """An op that computes both, with the region of the producer; what the consumer also reads are extra operands."""
    value, block = producer.results[0], producer.epilogue.block
    added = extras_of(consumer, value)
    result = _last_value(block)
    new_arguments = [block.insert_arg(_scalar_of(consumer, pair), len(block.args)) for pair in added]
    arguments = dict(zip(added, new_arguments, strict=True))
    reads = list(zip(consumer.inputs, consumer.access, strict=True))
    append(block, consumer.body, [result if pair[0] is value else arguments[pair] for pair in reads])
    fused = _rebuilt(producer, consumer, added)
    tidy(fused.epilogue.block)
    return fused


def _rebuilt(
    producer: Accumulating, consumer: PointwiseOp, added: Sequence[tuple[SSAValue, AccessAttr]]
) -> Accumulating:
    fixed, name = _SHAPES[type(producer)]
    accesses = producer.extra_access if isinstance(producer, ReductionOp) else producer.access
    properties = dict(producer.properties)
    properties.pop("operandSegmentSizes", None)
    properties[name] = ArrayAttr([*accesses, *(access for _, access in added)])
    fused = type(producer).build(
        operands=[*fixed(producer), [*producer.extras, *(value for value, _ in added)]],
        properties=properties,
        result_types=[consumer.outputs[0].type],
        regions=[producer.detach_region(region) for region in list(producer.regions)],
    )
    fused.attributes = dict(producer.attributes)
    return fused


def _last_value(block: Block) -> SSAValue:
    assert block.last_op is not None
    return block.last_op.operands[0]


def _scalar_of(consumer: PointwiseOp, pair: tuple[SSAValue, AccessAttr]) -> Attribute:
    pairs = list(zip(consumer.inputs, consumer.access, strict=True))
    return consumer.body.block.args[pairs.index(pair)].type


def reads_in_place(access: AccessAttr) -> bool:
    """Whether each index is 0 or the iteration dimension of an axis, in order."""
    used = [index for index in access.indices() if index != 0]
    axes = [_axis(index) for index in used]
    return None not in axes and axes == sorted(axes, key=lambda axis: -1 if axis is None else axis)


def _axis(index: Dim) -> int | None:
    text = str(index)
    return int(text[1:]) if text[0] == "d" and text[1:].isdigit() else None
