"""A pointwise op as one parallel loop nest, with as few loops as its accesses allow."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.tensor_types import dims, element_count, element_of
from mlirt.kernels.lib.loops.block_lanes import LaneMask, lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, affine, collapse, direct
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (PointwiseOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
    """`parallel (d..) { load the operands; the body; store the results }`."""
    write(op, lowering, collapse(nest_of(op, lowering), kept_axes(op)))
    return True


def nest_of(op: PointwiseOp, lowering: Lowering) -> Nest:
    """One loop for each dimension, the last one along the memory of the result."""
    space, places = dims(op.outputs[0].type), lowering.placements
    operands = [affine(value, places[value], one, len(space)) for value, one in zip(op.inputs, op.access, strict=True)]
    results = [direct(value, places[value]) for value in op.outputs]
    return Nest.of(space, [*operands, *results]).ordered(-1)


def kept_axes(op: PointwiseOp) -> frozenset[int]:
    """The dimensions whose indices the kernel needs."""
    return frozenset(_needed(op) | lane_axes(op.outputs[0].type))


def _needed(op: PointwiseOp) -> set[int]:
    return {inner.dim.value.data for inner in op.body.block.ops if isinstance(inner, IndexOp)}


def write(op: PointwiseOp, lowering: Lowering, nest: Nest) -> None:
    """Launch a kernel that computes the iterations of a nest."""
    space, needed = dims(op.outputs[0].type), _needed(op)
    k = lowering.kernel("pointwise")
    code = NestCode(k, nest)
    numbers = [splat(k, value, lowering) for value in op.inputs]
    with k.parallel(code.extents()) as loops:
        mask = LaneMask(k, op.outputs[0].type, lambda axis: code.original(axis, loops))
        scalars = [code.load(position, loops) if number is None else number for position, number in enumerate(numbers)]
        indices = [code.original(axis, loops) if axis in needed else loops[0] for axis in range(len(space))]
        for position, value in enumerate(k.inline(op.body, scalars, indices), len(op.inputs)):
            code.store(mask.apply(value), position, loops)
    k.finish(op)


def splat(k: KernelBuilder, value: SSAValue, lowering: Lowering) -> SSAValue | None:
    """The only element of a constant operand, as an argument of the kernel; None for other operands."""
    element = element_of(value.type)
    if element not in (f32, f64) or element_count(value.type) != 1:
        return None
    array = lowering.constant_array(value)
    return None if array is None else k.scalar(float(array.reshape(-1)[0]), element)
