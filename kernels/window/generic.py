"""Pooling: a parallel nest over the results around a reduction over the taps, taps outside of the input left out."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from mlirt.dialects.combine import ReduceKind, identity
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims, element_name, rank
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.epilogue import extra_operands, store_finished
from mlirt.kernels.lib.language import Index, Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.words import (
    Box,
    cast,
    constant,
    integer_of,
    parallel,
    prod,
    reduction,
)
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.nests.taps import Axis, AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (WindowOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: WindowOp, lowering: Lowering) -> bool:
    needed = indices_in(op.epilogue) | frozenset(op.axes()) | lane_axes(op.output.type)
    k = lowering.kernel("window")
    code = NestCode(k, collapse(window_nest(op, lowering), needed))
    axes = [AxisCode(k, axis) for axis in window_axes(op)]
    steps = [k.strides(op.input)[axis] for axis in op.axes()]
    posts = [value_of(k.size(post)) if op.includes_padding else None for post in op.post_padding.dims()]
    build(k, _window, op, code, axes, steps, posts)
    k.finish(op)
    return True


@kernel
def _window(
    op: WindowOp,
    code: NestCode,
    axes: Sequence[AxisCode],
    steps: Sequence[Stride],
    posts: Sequence[Value | None],
) -> None:
    """`for each p..: combine over the taps of x where inside; divide; epilogue; store`."""
    type_ = accumulator_type(op.epilogue)
    kind = ReduceKind.MAX if op.kind.data is WindowKind.MAX else ReduceKind.ADD
    start = constant(identity(kind, element_name(type_)), type_)
    for loops in parallel(code.extents()):
        here = code.loops_before(rank(op.output.type), loops)
        starts = [axis.start(value_of(code.original(at, here))) for axis, at in zip(axes, op.axes(), strict=True)]

        def element(taps: Sequence[Value]) -> Value:
            found = [axis.place(first, tap) for axis, first, tap in zip(axes, starts, taps, strict=True)]
            value, more = start, [(place, step) for (place, _), step in zip(found, steps, strict=True)]
            if all(inside for _, inside in found):
                value = value_of(code.read_typed(0, type_, here, more))
            return value

        total = reduction(kind, Box([axis.taps for axis in axes]), start, element)
        if op.kind.data is WindowKind.AVERAGE:
            counts = [axis.count(first, post) for axis, first, post in zip(axes, starts, posts, strict=True)]
            total = mean(total, counts, type_)
        store_finished(op.epilogue, code, 1, total, here)


@kernel
def mean(total: Value, counts: Sequence[Index], accumulator: Attribute) -> Value:
    """The mean of as many cells as the product of `counts`, 0 of none."""
    k, cells = builder(), integer_of(max(prod(counts), 1), i64)
    quotient = k.scalars(accumulator).div(k.ready(total), cast(cells, i64, accumulator))  # also of unsigned numbers
    return value_of(k.typed(quotient, accumulator))


def window_nest(op: WindowOp, lowering: Lowering) -> Nest:
    """The loops over the results, the last one along their memory; the input stands still along the axes of a window.

    The operands are the input, the extra operands and the result.
    """
    space = dims(op.output.type)
    steps = whole(op.input, lowering).steps
    kept = tuple(0 if axis in op.axes() else step for axis, step in enumerate(steps))
    operands = [Affine(op.input, kept), *extra_operands(op, lowering.placements), whole(op.output, lowering)]
    return Nest.of(space, operands).ordered(-1)


def window_axes(op: WindowOp) -> list[Axis]:
    """The axes over which a window slides."""
    lengths, outputs = dims(op.input.type), dims(op.output.type)
    columns = zip(
        integers(op.window), integers(op.stride), integers(op.dilation), op.pre_padding.dims(), op.axes(), strict=True
    )
    return [
        Axis(size, stride, dilation, pre, lengths[axis], outputs[axis]) for size, stride, dilation, pre, axis in columns
    ]
