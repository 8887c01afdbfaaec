"""A pointwise op as one parallel loop nest, with as few loops as its accesses allow."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.tensor_types import dims, element_count, element_of, rank
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.nest_words import lane_exists, original_indices
from mlirt.kernels.lib.language.words import constant, inline, parallel
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, affine, collapse, direct
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (PointwiseOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
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
    return indices_in(op.body) | lane_axes(op.outputs[0].type)


def write(op: PointwiseOp, lowering: Lowering, nest: Nest) -> None:
    """Launch a kernel that computes the iterations of a nest."""
    k = lowering.kernel("pointwise")
    code = NestCode(k, nest)
    build(k, _pointwise, op, code, [splat(k, value, lowering) for value in op.inputs])
    k.finish(op)


@kernel
def _pointwise(op: PointwiseOp, code: NestCode, numbers: Sequence[Value | None]) -> None:
    """`for each d..: y.. = body(x..)`; `numbers` are the operands that have one element."""
    type_ = op.outputs[0].type
    for loops in parallel(code.extents()):
        exists = lane_exists(type_, lambda axis: code.original(axis, loops))
        scalars = [code.load(one, loops) if number is None else number for one, number in enumerate(numbers)]
        results = inline(op.body, scalars, original_indices(code, indices_in(op.body), loops, rank(type_)))
        for one, value in enumerate(results, len(numbers)):
            code.store(value if exists else constant(0, value.type), one, loops)


def splat(k: KernelBuilder, value: SSAValue, lowering: Lowering) -> Value | None:
    """The only element of a constant operand, as an argument of the kernel; None for other operands."""
    element = element_of(value.type)
    if element not in (f32, f64) or element_count(value.type) != 1:
        return None
    array = lowering.constant_array(value)
    return None if array is None else k.scalar(float(array.reshape(-1)[0]), element)
