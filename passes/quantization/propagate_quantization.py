"""Layers that move or compare numbers do so with the integers that stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, f32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import element_of, integer_range, numpy_dtype, with_element
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.quantization.commuting_layers import (
    Movement,
    axis_behind,
    fill_of,
    movement_of,
    rebuilt,
    sources_of,
)
from mlirt.passes.quantization.int8_layers import Int8Layers
from mlirt.passes.quantization.scalings import Refusal, Scaling, scaling_of


@dataclass(frozen=True)
class PropagateQuantizationPass(ModulePass):
    """Dequantise as late, and quantise as early as possible.

    A dequantisation moves behind a layer all of whose tensors are dequantised with equal scales, and a quantisation in
    front of a layer whose result nothing else reads, where the layer only moves or compares elements: maximum pooling,
    transposition, slice, concatenation, gather, nearest resize, padding and their like. In front of it, all that reads
    its tensors comes to the same integers. Cells that a layer fills with a number hold the integer for it; a
    dequantisation stays where there is none.

    Before:

        %d = trt.dequantize %x, %s : (tensor<1x2x4x4xi8>, tensor<f32>) -> tensor<1x2x4x4xf32>
        %p = trt.pooling max %d {window = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
        %y = trt.quantize %p, %t : (tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xi8>

    After:

        %p = trt.pooling max %x {window = array<i64: 2, 2>} : (tensor<1x2x4x4xi8>) -> tensor<1x2x3x3xi8>
        %d = trt.dequantize %p, %s : (tensor<1x2x3x3xi8>, tensor<f32>) -> tensor<1x2x3x3xf32>
        %y = trt.quantize %d, %t : (tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xi8>
    """

    name = "propagate-quantization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                movement = movement_of(inner)
                if movement is not None:
                    _dequantize_behind(inner, movement, ctx)
            _quantize_early(block, ctx)


def _dequantize_behind(op: Operation, movement: Movement, ctx: Context) -> None:
    """Let a layer of dequantised tensors work on the integers."""
    owners = [source.owner for source in sources_of(op, movement)]
    before = [owner for owner in owners if isinstance(owner, DequantizeOp)]
    if len(before) < len(owners) or element_of(op.results[0].type) != f32:
        return
    scalings = [scaling_of(owner, ctx) for owner in before]
    scaling = scalings[0]
    if isinstance(scaling, Refusal) or any(isinstance(one, Refusal) or not one.equals(scaling) for one in scalings):
        return
    axis = None if scaling.axis is None else axis_behind(op, scaling.axis)
    if scaling.axis is not None and axis is None:
        return
    write = Int8Layers.in_front_of(op, ctx)
    fill = _integer_fill(op, movement, scaling, write)
    if isinstance(fill, Refusal):
        return
    moved = write.value(rebuilt(op, movement, [one.input for one in before], fill, scaling.element))
    first = before[0]
    properties = {} if axis is None else {"axis": IntegerAttr(axis, i64)}
    after = DequantizeOp.build(
        operands=[moved, first.scale, first.zero_point],
        properties=properties,
        result_types=[op.results[0].type],
    )
    write.named = first
    _replace(op, write.value(after))
    for one in before:
        if one.output.first_use is None and one.parent is not None:
            one.detach()
            one.erase()


def _integer_fill(op: Operation, movement: Movement, scaling: Scaling, write: Int8Layers) -> SSAValue | Refusal | None:
    """The integer that means exactly what cells outside hold; `None` where there are none, or it is 0."""
    import numpy as np

    if not movement.fill:
        return None
    operand = fill_of(op, movement)
    number = np.zeros((), np.float32) if operand is None else array_of(operand, write.ctx)
    if number is None or number.size != 1 or scaling.axis is not None:
        return Refusal("cells outside hold a number of the run")
    low, high = integer_range(scaling.element)
    integer = np.rint(np.float64(number.reshape(())) / np.float64(scaling.scale)) + scaling.zero
    meant = np.float32((integer - scaling.zero) * np.float64(scaling.scale))
    if not low <= integer <= high or meant != number.reshape(()):
        return Refusal("no integer stands for the number that cells outside hold")
    shape = () if operand is None else number.shape
    return write.constant(np.full(shape, integer, numpy_dtype(scaling.element))) if integer else None


def _quantize_early(block: Block, ctx: Context) -> None:
    """Let layers work on integers whose result is only quantised; later ones first, as each may uncover another."""
    waiting = [op for op in block.ops if isinstance(op, QuantizeOp)]
    while waiting:
        waiting += _quantize_in_front(waiting.pop(), ctx)


def _quantize_in_front(op: QuantizeOp, ctx: Context) -> Sequence[QuantizeOp]:
    """Move a quantisation to the operands of the layer before it; returns what it becomes."""
    layer, scaling = op.input.owner, scaling_of(op, ctx)
    if not isinstance(layer, Operation) or isinstance(scaling, Refusal) or scaling.axis is not None:
        return []
    movement = movement_of(layer)
    if movement is None or layer.parent is not op.parent or not op.input.has_one_use():
        return []
    sources, fill = sources_of(layer, movement), fill_of(layer, movement)
    if fill is not None and array_of(fill, ctx) is None:
        return []
    if not all(_is_needed_as_integers(source, layer, scaling, ctx) for source in sources):
        return []
    write = Int8Layers.in_front_of(op, ctx)
    quantized = [write.value(_quantized(op, source)) for source in sources]
    zero = write.constant(scaling.zero.astype(numpy_dtype(scaling.element)))
    filled = None if not movement.fill or (fill is None and not scaling.zero) else zero
    if fill is not None:
        filled = write.value(_quantized(op, fill))
    write.named = layer
    _replace(op, write.value(rebuilt(layer, movement, quantized, filled, scaling.element)))
    layer.detach()
    layer.erase()
    return [value.owner for value in quantized if isinstance(value.owner, QuantizeOp)]


def _is_needed_as_integers(source: SSAValue, layer: Operation, scaling: Scaling, ctx: Context) -> bool:
    """Whether nothing but `layer` and other roads to equal integers read numbers, or they are integers as it is."""
    if isinstance(source.owner, DequantizeOp | ConstantOp):
        return True
    return all(use.operation is layer or _is_quantized(use.operation, scaling, ctx) for use in source.uses)


def _is_quantized(op: Operation, scaling: Scaling, ctx: Context) -> bool:
    """Whether an op is a quantisation with these numbers, or moves elements to one and nowhere else."""
    if movement_of(op) is not None:
        reader = op.results[0].get_user_of_unique_use()
        return reader is not None and _is_quantized(reader, scaling, ctx)
    found = scaling_of(op, ctx) if isinstance(op, QuantizeOp) else None
    return isinstance(found, Scaling) and found.equals(scaling)


def _quantized(op: QuantizeOp, value: SSAValue) -> QuantizeOp:
    result: Attribute = with_element(value.type, element_of(op.output.type))
    return QuantizeOp.build(operands=[value, op.scale, op.zero_point], result_types=[result])


def _replace(op: Operation, value: SSAValue) -> None:
    value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()
