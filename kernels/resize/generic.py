"""Resizing: each sample is a weighted sum over the taps of all resized axes, or for `nearest` one element."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.interpolation import ResizeKind
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.resize.generic_taps import ComputedTaps, Sample, TableTaps, Taps

OPS = (ResizeOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: ResizeOp, lowering: Lowering) -> bool:
    """`parallel (p..) { reduce (taps) { weights * x }; store }`."""
    axes = [axis for axis in range(rank(op.input.type)) if not op.is_copied(axis)]
    element = element_of(op.input.type)
    wide = compute_type(element) if is_float(element) else f64
    k = lowering.kernel("resize")
    source = whole(op.input, lowering)
    fixed = Affine(op.input, tuple(0 if axis in axes else step for axis, step in enumerate(source.steps)))
    nest = collapse(Nest.of(dims(op.output.type), [fixed, whole(op.output, lowering)]).ordered(1), frozenset(axes))
    code = NestCode(k, nest)
    taps = [_taps(k, op, axis, wide) for axis in axes]
    strides = [k.strides(op.input)[axis] for axis in axes]
    with k.parallel(code.extents()) as loops:
        here = code.loops_before(rank(op.output.type), loops)
        samples = [one.at(code.original(axis, here)) for one, axis in zip(taps, axes, strict=True)]
        if op.kind.data is ResizeKind.NEAREST:
            places = [sample.tap(k.constant(0))[0] for sample in samples]
            value = code.load(0, here, list(zip(places, strides, strict=True)))
        else:
            value = _weighted(k, code, samples, strides, here, wide)
            value = k.typed(k.scalars(element).cast(value, wide), element)
        code.store(_extrapolated(k, op, samples, value), 1, here)
    k.finish(op)
    return True


def _taps(k: KernelBuilder, op: ResizeOp, axis: int, wide: Attribute) -> Taps:
    before, after, scales = dims(op.input.type)[axis], dims(op.output.type)[axis], op.scale_factors()
    if isinstance(before, int) and isinstance(after, int):
        return TableTaps(k, op.resampling(axis), before, after, op.scale(axis, before, after), wide)
    return ComputedTaps(k, op.resampling(axis), before, after, None if scales is None else scales[axis], wide)


def _weighted(
    k: KernelBuilder,
    code: NestCode,
    samples: list[Sample],
    strides: list[Stride],
    here: list[SSAValue],
    wide: Attribute,
) -> SSAValue:
    def element(at: list[SSAValue]) -> SSAValue:
        found = [sample.tap(t) for sample, t in zip(samples, at, strict=True)]
        places = [(index, stride) for (index, _), stride in zip(found, strides, strict=True)]
        value = code.read(0, wide, here, places)
        for _, weight in found:
            value = k.value(arith.MulfOp(value, weight))
        return value

    if not samples:
        return code.read(0, wide, here)
    return k.reduce(ReduceKind.ADD, [sample.count for sample in samples], k.constant(0.0, wide), element)


def _extrapolated(k: KernelBuilder, op: ResizeOp, samples: list[Sample], value: SSAValue) -> SSAValue:
    """The extrapolation value where a sample lies outside along any axis."""
    element = element_of(op.input.type)
    number = op.extrapolation_value.value.data
    for sample in samples:
        if sample.outside is not None:
            filled = k.typed(k.scalars(element).constant(number if is_float(element) else int(number)), element)
            value = k.value(arith.SelectOp(sample.outside, filled, value))
    return value
