"""Convolutions and deconvolutions with explicit pads, their bias as the first part of the epilogue."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp as FusedConvolutionOp
from mlirt.dialects.fused.scalar_builder import (
    Scalars,
    accumulator_type,
    arguments_of,
    yield_as,
)
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions

Pads = Sequence[tuple[int, int]]


def bias_region(factor: Attribute, element: Attribute, extras: Sequence[SSAValue]) -> Region:
    """An epilogue that adds each extra operand to a sum of products of `factor`s, and yields an `element`."""
    block = Block()
    scalars = Scalars(block, accumulator_type(factor))
    elements = [scalars.element, *(element_of(extra.type) for extra in extras)]
    total, *others = arguments_of(block, elements)
    for other, source in zip(others, elements[1:], strict=True):
        total = scalars.add(total, scalars.cast(other, source))
    yield_as(scalars, total, element)
    return Region(block)


def convert_convolution(at: Conversion) -> None:
    """`trt.convolution` becomes `fused.convolution`; cells that rounding up lets a window reach count as padding."""
    op = at.op
    assert isinstance(op, ConvolutionOp)
    pads: list[tuple[int, int]] = []
    for window, length in zip(op.windows(), op.spatial_dims(), strict=True):
        pre, post = window.padding(length)
        pads.append(_numbers(at, pre, post + window.overhang(length)))
    _emit(at, op, pads, transposed=False)


def convert_deconvolution(at: Conversion) -> None:
    """`trt.deconvolution` becomes a transposed `fused.convolution`; the result type holds the output padding."""
    op = at.op
    assert isinstance(op, DeconvolutionOp)
    _emit(at, op, [_numbers(at, *window.padding()) for window in op.transposed_windows()], transposed=True)


def _numbers(at: Conversion, pre: Dim, post: Dim) -> tuple[int, int]:
    if isinstance(pre, int) and isinstance(post, int):
        return pre, post
    raise at.unsupported(
        f"its padding depends on a dynamic dimension ({pre}, {post}); give explicit pads, or build for a fixed size"
    )


def _emit(at: Conversion, op: ConvolutionOp | DeconvolutionOp, pads: Pads, *, transposed: bool) -> None:
    """Emit the op on N x C x spatial: leading dimensions are joined, a line becomes an image of height 1."""
    lines = len(op.sizes()) == 1
    shape, output = dims(op.input.type), dims(op.output.type)
    lead = len(shape) - len(op.sizes()) - 1
    one: tuple[Dim, ...] = (1,) if lines else ()
    image = at.viewed(op.input, _image(shape, lead, one))
    weights = dims(op.kernel.type)
    kernel = at.reshaped(op.kernel, (*weights[:2], *one, *weights[2:]))
    result = tensor(element_of(op.output.type), _image(output, lead, one))
    extras = [] if op.bias is None else [op.bias]
    made = FusedConvolutionOp(
        image,
        kernel,
        result,
        bias_region(element_of(op.input.type), element_of(op.output.type), extras),
        stride=[*one, *op.strides()],  # pyright: ignore[reportArgumentType]
        dilation=[*one, *op.dilations()],  # pyright: ignore[reportArgumentType]
        pre_padding=[*(0 for _ in one), *(pre for pre, _ in pads)],
        post_padding=[*(0 for _ in one), *(post for _, post in pads)],
        groups=op.groups,
        transposed=transposed,
        padding_value=op.padding_value.value.data if isinstance(op, ConvolutionOp) else 0,
        extras=extras,
        access=[AccessAttr.of([iteration(1)])] * len(extras),
    )
    at.replace(at.viewed(at.emit(made), output))


def _image(shape: Sequence[Dim], lead: int, height: Sequence[Dim]) -> tuple[Dim, ...]:
    return (product(tuple(shape[:lead])) if lead != 1 else shape[0], shape[lead], *height, *shape[lead + 1 :])


CONVERSIONS: Conversions = {ConvolutionOp: convert_convolution, DeconvolutionOp: convert_deconvolution}
