"""Resizing: each sample is a weighted sum over the taps of all resized axes, or for `nearest` one element."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute

from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.interpolation import ResizeKind
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.kernels.lib.language import Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.nest_words import NestOperand
from mlirt.kernels.lib.language.words import Box, constant, narrowed, parallel, place, reduction
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.resize.generic_taps import Taps, computed_taps, table_taps

OPS = (ResizeOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: ResizeOp, lowering: Lowering) -> bool:
    axes = [axis for axis in range(rank(op.input.type)) if not op.is_copied(axis)]
    k = lowering.kernel("resize")
    source = whole(op.input, lowering)
    fixed = Affine(op.input, tuple(0 if axis in axes else step for axis, step in enumerate(source.steps)))
    nest = collapse(Nest.of(dims(op.output.type), [fixed, whole(op.output, lowering)]).ordered(1), frozenset(axes))
    build(k, _resize, NestCode(k, nest), axes, op)
    k.finish(op)
    return True


@kernel
def _resize(code: NestCode, axes: Sequence[int], op: ResizeOp) -> None:
    """`for each p: y[p] = sum of weight * x[index] for the taps of p`."""
    element = element_of(op.input.type)
    wide = compute_type(element) if is_float(element) else f64
    taps = [_taps(op, axis, wide) for axis in axes]
    strides = [builder().strides(op.input)[axis] for axis in axes]
    x, y = NestOperand(code, 0, wide), NestOperand(code, 1, wide)
    for loops in parallel(code.extents()):
        here = code.loops_before(rank(op.output.type), loops)
        samples = [one(value_of(code.original(axis, here))) for one, axis in zip(taps, axes, strict=True)]

        def weighted(at: Sequence[Value]) -> Value:
            found = [sample.tap(t) for sample, t in zip(samples, at, strict=True)]
            value = x.moved([(index, step) for (index, _), step in zip(found, strides, strict=True)])[here]
            for _, weight in found:
                value = value * weight
            return value

        if op.kind.data is ResizeKind.NEAREST:
            places = [sample.tap(place(0))[0] for sample in samples]
            value = code.load(0, here, list(zip(places, strides, strict=True)))
        else:
            extents = [sample.count for sample in samples]
            total = reduction(ReduceKind.ADD, Box(extents), constant(0.0, wide), weighted) if samples else x[here]
            value = y.narrowed(total)
        for sample in samples:
            if sample.outside is not None:
                value = _extrapolated(op) if sample.outside else value
        code.store(value, 1, here)


def _taps(op: ResizeOp, axis: int, wide: Attribute) -> Taps:
    before, after, scales = dims(op.input.type)[axis], dims(op.output.type)[axis], op.scale_factors()
    if isinstance(before, int) and isinstance(after, int):
        return table_taps(op.resampling(axis), before, after, op.scale(axis, before, after), wide)
    return computed_taps(op.resampling(axis), before, after, None if scales is None else scales[axis], wide)


@kernel
def _extrapolated(op: ResizeOp) -> Value:
    """What samples are that lie outside."""
    element, number = element_of(op.input.type), op.extrapolation_value.value.data
    return narrowed(constant(number if is_float(element) else int(number), element), element, element)
