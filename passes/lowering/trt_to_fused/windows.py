"""Pooling as windows over the last axes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.tensor_types import element_of, is_float, rank
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.passes.lowering.trt_to_fused.conversion import Conversion, Conversions
from mlirt.passes.lowering.trt_to_fused.scalar_builder import (
    Scalars,
    accumulator_type,
    compute_type,
    conversion_region,
    extreme_type,
)


def convert_pooling(at: Conversion) -> None:
    """`trt.pooling` becomes `fused.window`; a blend becomes two windows and the weighted sum of their results."""
    op = at.op
    assert isinstance(op, PoolingOp)
    if op.kind.data is not PoolingKind.MAX_AVERAGE_BLEND:
        at.replace(_window(at, op, WindowKind.MAX if op.kind.data is PoolingKind.MAX else WindowKind.AVERAGE))
        return
    if not is_float(element_of(op.input.type)):
        raise at.unsupported("a blend of maximum and average needs floating-point numbers; cast the input before")
    largest, mean = _window(at, op, WindowKind.MAX), _window(at, op, WindowKind.AVERAGE)
    blend = op.blend_factor.value.data

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        return s.add(s.mul(s.constant(1 - blend), x[0]), s.mul(s.constant(blend), x[1]))

    at.replace(at.pointwise([largest, mean], op.output.type, compute_type(element_of(op.input.type)), formula))


def _window(at: Conversion, op: PoolingOp, kind: WindowKind) -> SSAValue:
    element = element_of(op.input.type)
    accumulator = extreme_type(element) if kind is WindowKind.MAX else accumulator_type(element)
    pads = op.padding()
    made = WindowOp(
        kind,
        op.input,
        op.output.type,
        conversion_region(accumulator, element),
        window=op.sizes(),
        stride=op.strides(),
        dilation=op.dilations(),
        pre_padding=[pre for pre, _ in pads],
        post_padding=[post for _, post in pads],
        axis=rank(op.input.type) - len(op.sizes()),
        count_include_padding=not op.excludes_padding,
    )
    return at.emit(made)


CONVERSIONS: Conversions = {PoolingOp: convert_pooling}
