"""Pooling as windows over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import math
from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.scalar_builder import (
    Scalars,
    accumulator_type,
    arguments_of,
    compute_type,
    conversion_region,
    extreme_type,
    yield_as,
)
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank, tensor
from mlirt.dialects.trt.lrn import LrnOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.window_arithmetic import ShortInput
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


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
    epilogue = conversion_region(accumulator, element)
    pads = op.padding()
    if kind is WindowKind.AVERAGE and not op.excludes_padding and op.short_input.data is ShortInput.PADDED:
        # All cells of all windows count.
        kind, pads, epilogue = WindowKind.ADD, op.written_padding(), _mean(accumulator, element, prod(op.sizes()))
    made = WindowOp(
        kind,
        op.input,
        op.output.type,
        epilogue,
        window=op.sizes(),
        stride=op.strides(),
        dilation=op.dilations(),
        pre_padding=[pre for pre, _ in pads],
        post_padding=[post for _, post in pads],
        axis=rank(op.input.type) - len(op.sizes()),
        count_include_padding=not op.excludes_padding,
    )
    return at.emit(made)


def _mean(accumulator: Attribute, element: Attribute, count: int) -> Region:
    """An epilogue that divides a sum."""
    block = Block()
    s = Scalars(block, accumulator)
    (total,) = arguments_of(block, [accumulator])
    yield_as(s, s.div(total, s.constant(count)), element)
    return Region(block)


def convert_lrn(at: Conversion) -> None:
    """`trt.lrn` becomes squares, and a window over the channels whose epilogue divides the input."""
    op = at.op
    assert isinstance(op, LrnOp)
    shape, element, size = dims(op.input.type), element_of(op.input.type), op.window.value.data
    compute = compute_type(element)
    squares = at.pointwise([op.input], tensor(compute, shape), compute, lambda s, x: s.mul(x[0], x[0]))
    made = WindowOp(
        WindowKind.ADD,
        squares,
        op.output.type,
        _normalization(compute, element, op),
        window=[size],
        stride=[1],
        dilation=[1],
        pre_padding=[(size - 1) // 2],
        post_padding=[size // 2],
        axis=op.channel_axis,
        extras=[op.input],
        access=[AccessAttr.of([iteration(axis) for axis in range(len(shape))])],
    )
    at.replace(at.emit(made))


def _normalization(compute: Attribute, element: Attribute, op: LrnOp) -> Region:
    """An epilogue (sum of squares, x) -> x / (k + alpha / window * sum) ^ beta."""
    block = Block()
    s = Scalars(block, compute)
    squares, x = arguments_of(block, [compute, element])
    alpha = s.constant(op.alpha.value.data / op.window.value.data)
    base = s.add(s.constant(op.k.value.data), s.mul(alpha, squares))
    power = s.function(math.PowFOp, base, s.constant(op.beta.value.data))
    yield_as(s, s.div(s.cast(x, element), power), element)
    return Region(block)


CONVERSIONS: Conversions = {PoolingOp: convert_pooling, LrnOp: convert_lrn}
