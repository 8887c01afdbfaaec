"""A product with weights of few bits as a plain sum of products: correct everywhere, fast nowhere."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.fused.reduction import ReductionKind
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.kernels.lib.loops.loop_nest import Affine, affine, direct
from mlirt.kernels.lib.loops.reduction_nest import Accumulation, accumulator_of, lower_accumulation
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (PackedMatmulOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: PackedMatmulOp, lowering: Lowering) -> bool:
    places, width = lowering.placements, rank(op.output.type)
    accumulator = accumulator_of(op.epilogue)
    bits, block = op.bits.value.data, op.block.value.data
    per = 8 // bits
    one_zero = dims(op.zero.type) == (1, 1)

    def body(k: KernelBuilder, scalars: list[SSAValue], indices: list[SSAValue]) -> SSAValue:
        wide, whole = k.scalars(accumulator), k.scalars(i32)
        column, depth = indices[width - 1], indices[width]
        number = k.div(depth, block)
        code = whole.cast(k.ready(k.load(op.codes, [column, k.div(depth, per)])), element_of(op.codes.type))
        if per > 1:
            shift = k.mul(k.rem(depth, per), bits)
            moved = k.value(arith.ShRUIOp(code, k.value(arith.IndexCastOp(shift, i32))))
            code = k.value(arith.AndIOp(moved, whole.constant((1 << bits) - 1)))
        place = [k.constant(0)] * 2 if one_zero else [column, number]
        zero = wide.cast(k.ready(k.load(op.zero, place)), element_of(op.zero.type))
        scale = wide.cast(k.ready(k.load(op.scale, [column, number])), element_of(op.scale.type))
        weight = wide.mul(wide.sub(wide.cast(code, i32), zero), scale)
        return k.typed(wide.mul(wide.cast(k.ready(scalars[0]), element_of(op.lhs.type)), weight), accumulator)

    steps = places[op.lhs].strides
    job = Accumulation(
        kind=ReductionKind.ADD,
        reduced=(op.depth,),
        inputs=[Affine(op.lhs, (*steps[:-1], 0, steps[-1]))],
        extras=[affine(value, places[value], one, width) for value, one in zip(op.extras, op.access, strict=True)],
        result=direct(op.output, places[op.output]),
        body=body,
        epilogue=op.epilogue,
        indices_in_body=frozenset({width - 1, width}),
    )
    lower_accumulation(op, job, "matmul", lowering)
    return True
