"""A matrix product as a plain sum of products: correct everywhere, fast nowhere."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.reduction import ReductionKind
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.kernels.lib.loops.loop_nest import Affine, affine, direct
from mlirt.kernels.lib.loops.reduction_nest import Accumulation, accumulator_of, lower_accumulation
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (MatmulOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    places, width = lowering.placements, rank(op.output.type)
    accumulator = accumulator_of(op.epilogue)
    elements = [element_of(op.lhs.type), element_of(op.rhs.type)]

    def body(k: KernelBuilder, scalars: list[SSAValue], indices: list[SSAValue]) -> SSAValue:
        wide = k.scalars(accumulator)
        left, right = (wide.cast(k.ready(value), element) for value, element in zip(scalars, elements, strict=True))
        return k.typed(wide.mul(left, right), accumulator)

    lhs_axes = (-1, -2) if op.transpose_lhs.value.data else (-2, -1)
    rhs_axes = (-2, -1) if op.transpose_rhs.value.data else (-1, -2)
    depth = dims(op.lhs.type)[lhs_axes[1]]
    job = Accumulation(
        kind=ReductionKind.ADD,
        reduced=(depth,),
        inputs=[
            _factor(op.lhs, op.output, lowering, kept=lhs_axes[0], reduced=lhs_axes[1], is_left=True),
            _factor(op.rhs, op.output, lowering, kept=rhs_axes[0], reduced=rhs_axes[1], is_left=False),
        ],
        extras=[affine(value, places[value], one, width) for value, one in zip(op.extras, op.access, strict=True)],
        result=direct(op.output, places[op.output]),
        body=body,
        epilogue=op.epilogue,
    )
    lower_accumulation(op, job, "matmul", lowering)
    return True


def _factor(value: SSAValue, output: SSAValue, lowering: Lowering, kept: int, reduced: int, is_left: bool) -> Affine:
    """One factor over batch dimensions, rows, columns and the dimension of the sum."""
    steps, sizes, results = lowering.placements[value].strides, dims(value.type), dims(output.type)
    batch: list[Dim] = [
        0 if size == 1 and result != 1 else step
        for size, result, step in zip(sizes[:-2], results[:-2], steps[:-2], strict=True)
    ]
    matrix: list[Dim] = [steps[kept], 0] if is_left else [0, steps[kept]]
    return Affine(value, (*batch, *matrix, steps[reduced]))
