"""Pooling: a parallel nest over the results around a reduction over the taps, taps outside of the input left out."""

from __future__ import annotations

from functools import partial, reduce

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.reduction import ReductionKind, neutral
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_name
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.block_lanes import LaneMask, lane_axes, number
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.kernels.lib.loops.reduction_nest import accumulator_of, indices_in
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.taps import Axis, AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (WindowOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: WindowOp, lowering: Lowering) -> bool:
    """`parallel (p..) { reduce (taps) { x where inside }; divide; epilogue; store }`."""
    places, space = lowering.placements, dims(op.output.type)
    accumulator = accumulator_of(op.epilogue)
    kind = ReductionKind.MAX if op.kind.data is WindowKind.MAX else ReductionKind.ADD
    extras = [affine(value, places[value], one, len(space)) for value, one in zip(op.extras, op.access, strict=True)]
    steps = whole(op.input, lowering).steps
    kept = tuple(0 if axis in op.axes() else step for axis, step in enumerate(steps))
    operands = [Affine(op.input, kept), *extras, whole(op.output, lowering)]
    needed = indices_in(op.epilogue) | set(op.axes()) | lane_axes(op.output.type)
    k = lowering.kernel("window")
    code = NestCode(k, collapse(Nest.of(space, operands).ordered(-1), frozenset(needed)))
    axes = [AxisCode(k, axis) for axis in window_axes(op)]
    input_steps = [k.strides(op.input)[axis] for axis in op.axes()]
    posts = [k.size(post) for post in op.post_padding.dims()] if op.includes_padding else [None] * len(axes)
    neutral_value = number(k, neutral(kind, element_name(accumulator)), accumulator)
    with k.parallel(code.extents()) as loops:
        here = code.loops_before(len(space), loops)
        starts = [axis.start(code.original(at, here)) for axis, at in zip(axes, op.axes(), strict=True)]

        def element(taps: list[SSAValue]) -> SSAValue:
            found = [axis.place(start, tap) for axis, start, tap in zip(axes, starts, taps, strict=True)]
            valid = reduce(k.both, [inside for _, inside in found])
            more = [(place, step) for (place, _), step in zip(found, input_steps, strict=True)]
            return k.guarded(valid, partial(code.read_typed, 0, accumulator, here, more), neutral_value)

        total = k.reduce(ReduceKind(kind.value), [axis.taps for axis in axes], neutral_value, element)
        if op.kind.data is WindowKind.AVERAGE:
            counts = [axis.count(start, post) for axis, start, post in zip(axes, starts, posts, strict=True)]
            total = divided(k, total, reduce(k.mul, counts), accumulator)
        scalars = [total, *(code.load(1 + position, here) for position in range(len(extras)))]
        indices = [code.original(axis, here) if axis in needed else loops[0] for axis in range(len(space))]
        (value,) = k.inline(op.epilogue, scalars, indices)
        mask = LaneMask(k, op.output.type, lambda axis: code.original(axis, here))
        code.store(mask.apply(value), 1 + len(extras), here)
    k.finish(op)
    return True


def divided(k: KernelBuilder, total: SSAValue, count: SSAValue, accumulator: Attribute) -> SSAValue:
    """The mean of `count` cells, 0 of none."""
    s = k.scalars(accumulator)
    cells = s.cast(k.to_integer(k.max(count, 1), i64), i64)
    return k.typed(s.div(k.ready(total), cells), accumulator)


def window_axes(op: WindowOp) -> list[Axis]:
    """The axes over which a window slides."""
    lengths, outputs = dims(op.input.type), dims(op.output.type)
    columns = zip(
        integers(op.window), integers(op.stride), integers(op.dilation), op.pre_padding.dims(), op.axes(), strict=True
    )
    return [
        Axis(size, stride, dilation, pre, lengths[axis], outputs[axis]) for size, stride, dilation, pre, axis in columns
    ]
