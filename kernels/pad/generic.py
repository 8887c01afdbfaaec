"""Padding and slices beyond the border: each result element finds its place in the input."""

from __future__ import annotations

from functools import partial

from xdsl.ir import SSAValue

from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.block_lanes import zero
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (PadOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: PadOp, lowering: Lowering) -> bool:
    """`parallel (i..) { p = i * stride - pre, resolved by the mode; load or fill; store }`."""
    sizes, results = dims(op.input.type), dims(op.output.type)
    steps = list(zip(op.pre.dims(), op.strides(), sizes, results, strict=True))
    moved = [
        axis for axis, (pre, stride, size, result) in enumerate(steps) if (pre, stride) != (0, 1) or size != result
    ]
    k = lowering.kernel("pad")
    operands = [whole(op.input, lowering), whole(op.output, lowering)]
    code = NestCode(k, collapse(Nest.of(results, operands).ordered(1), frozenset(moved)))
    pads = {axis: k.size(op.pre.dims()[axis]) for axis in moved}
    strides = {axis: k.stride(op.strides()[axis]) for axis in moved}
    lengths = {axis: k.size(sizes[axis]) for axis in moved}
    zeros = [k.constant(0)] * rank(op.fill.type) if op.fill is not None else []
    fill = zero(k, element_of(op.input.type)) if op.fill is None else k.load(op.fill, zeros)
    with k.parallel(code.extents()) as loops:
        here = list(loops[: len(code.nest.groups)])
        inside: SSAValue | None = None
        for axis in moved:
            loop = code.nest.groups.index((axis,))
            wanted = k.sub(k.mul(loops[loop], strides[axis]), pads[axis])
            here[loop], valid = resolve(k, wanted, lengths[axis], op.mode.data)
            inside = k.both(inside, valid)
        value = k.guarded(inside, partial(code.load, 0, here), fill)
        code.store(value, 1, loops)
    k.finish(op)
    return True


def resolve(k: KernelBuilder, place: SSAValue, length: SSAValue, mode: PadMode) -> tuple[SSAValue, SSAValue | None]:
    """A position in the input, and where it is valid (None: everywhere)."""
    if mode is PadMode.CONSTANT:
        return place, k.compare("ult", place, length)
    if mode is PadMode.EDGE:
        return k.clamp(place, length), None
    if mode is PadMode.WRAP:
        return _modulo(k, place, length), None
    period = k.max(k.mul(k.sub(length, 1), 2), 1)
    folded = _modulo(k, place, period)
    return k.select(k.compare("slt", folded, length), folded, k.sub(period, folded)), None


def _modulo(k: KernelBuilder, place: SSAValue, length: SSAValue) -> SSAValue:
    """The remainder that is never negative."""
    return k.sub(place, k.mul(k.floor_div(place, length), length))
