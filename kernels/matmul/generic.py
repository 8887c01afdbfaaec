"""A matrix product as a plain sum of products: correct everywhere, fast nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.words import narrowed, widened
from mlirt.kernels.lib.loops.loop_nest import Affine
from mlirt.kernels.lib.nests.reduction_nest import Accumulation, lower_accumulation
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (MatmulOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    lhs_axes = (-1, -2) if op.transpose_lhs.value.data else (-2, -1)
    rhs_axes = (-2, -1) if op.transpose_rhs.value.data else (-1, -2)
    depth = dims(op.lhs.type)[lhs_axes[1]]
    job = Accumulation(
        op,
        kind=ReduceKind.ADD,
        reduced=(depth,),
        inputs=[
            _factor(op.lhs, op.output, lowering, kept=lhs_axes[0], reduced=lhs_axes[1], is_left=True),
            _factor(op.rhs, op.output, lowering, kept=rhs_axes[0], reduced=rhs_axes[1], is_left=False),
        ],
        body=partial(_product, accumulator_type(op.epilogue)),
    )
    lower_accumulation(job, "matmul", lowering)
    return True


@kernel
def _product(accumulator: Attribute, factors: Sequence[SSAValue], indices: Sequence[SSAValue]) -> Value:
    left, right = [widened(factor, accumulator) for factor in factors]
    return narrowed(left * right, accumulator, accumulator)


def _factor(value: SSAValue, output: SSAValue, lowering: Lowering, kept: int, reduced: int, is_left: bool) -> Affine:
    """One factor over batch dimensions, rows, columns and the dimension of the sum."""
    steps, sizes, results = lowering.placements[value].strides, dims(value.type), dims(output.type)
    batch: list[Dim] = [
        0 if size == 1 and result != 1 else step
        for size, result, step in zip(sizes[:-2], results[:-2], steps[:-2], strict=True)
    ]
    matrix: list[Dim] = [steps[kept], 0] if is_left else [0, steps[kept]]
    return Affine(value, (*batch, *matrix, steps[reduced]))
