"""A product with weights of few bits as a plain sum of products: correct everywhere, fast nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.fused.scalar_builder import Scalars
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.kernels.lib.language import Value, builder
from mlirt.kernels.lib.language.words import narrowed, widened
from mlirt.kernels.lib.loops.loop_nest import Affine
from mlirt.kernels.lib.nests.reduction_nest import Accumulation, lower_accumulation
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (PackedMatmulOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: PackedMatmulOp, lowering: Lowering) -> bool:
    width = rank(op.output.type)
    accumulator = accumulator_type(op.epilogue)
    bits, block = op.bits.value.data, op.block.value.data
    per = 8 // bits

    def body(scalars: Sequence[SSAValue], indices: Sequence[SSAValue]) -> Value:
        k = builder()
        wide, whole = k.scalars(accumulator), k.scalars(i32)
        column, depth = indices[width - 1], indices[width]
        code = _at(k, op.codes, whole, column, k.div(depth, per))
        if per > 1:
            shift = k.mul(k.rem(depth, per), bits)
            moved = k.value(arith.ShRUIOp(code, k.value(arith.IndexCastOp(shift, i32))))
            code = k.value(arith.AndIOp(moved, whole.constant((1 << bits) - 1)))
        zero, scale = (_at(k, value, wide, column, k.div(depth, block)) for value in (op.zero, op.scale))
        weight = wide.mul(wide.sub(wide.cast(code, i32), zero), scale)
        return narrowed(wide.mul(widened(scalars[0], accumulator), weight), accumulator, accumulator)

    steps = lowering.placements[op.lhs].strides
    job = Accumulation(
        op,
        kind=ReduceKind.ADD,
        reduced=(op.depth,),
        inputs=[Affine(op.lhs, (*steps[:-1], 0, steps[-1]))],
        body=body,
        indices_in_body=frozenset({width - 1, width}),
    )
    lower_accumulation(job, "matmul", lowering)
    return True


def _at(k: KernelBuilder, value: SSAValue, scalars: Scalars, row: SSAValue, place: SSAValue) -> SSAValue:
    """One element of a matrix as a number; a dimension of length 1 has one for all places."""
    sizes = dims(value.type)
    indices = [k.constant(0) if size == 1 else index for size, index in zip(sizes, (row, place), strict=True)]
    return scalars.cast(k.ready(k.load(value, indices)), element_of(value.type))
