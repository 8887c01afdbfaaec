"""A sum over the results of a linear layer with constant weights, as one over its input."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import numbers_of
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float, numpy_dtype, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.window_arithmetic import PaddingMode
from mlirt.passes.fusion.affine_chains import AffineChain
from mlirt.passes.fusion.sums_of_windows import SummedAxis, WindowAxis, joined_weights, summed_kernel
from mlirt.passes.rules import Match

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Windowed = ConvolutionOp | DeconvolutionOp
LINEAR = (MatrixMultiplyOp, *Windowed.__args__)
_FIRST = 2  # window axis of an image
_GAIN = 4  # results of a convolution for each of the sums that take their place, at least


def moved_sum(m: Match, chain: AffineChain) -> SSAValue | str:
    """The total over the input of the layer where the chain begins, or why there is none."""
    if (reason := _obstacle(chain)) is not None:
        return reason
    layer, total = chain.source, chain.total
    m.ops = (layer, *reversed(chain.ops), total)
    found = _of_columns(m, chain) if isinstance(layer, MatrixMultiplyOp) else _of_pixels(m, chain)
    if not isinstance(found, SSAValue):
        return found
    m.drop(*chain.ops, layer)
    return _shaped(m, found, total)


def _obstacle(chain: AffineChain) -> str | None:
    layer = chain.source
    types = [layer.results[0].type, *(value.type for value in layer.operands)]
    if not all(is_float(element_of(one)) for one in types) or element_of(types[1]) != element_of(types[0]):
        return "its numbers are of several types, or integers"
    if not all(isinstance(size, int) and size > 0 for one in types for size in dims(one)):
        return "its lengths are not known"
    if not all(isinstance(value.owner, ConstantOp) for value in layer.operands[1:]):
        return "its weights are computed"
    return None


def _of_columns(m: Match, chain: AffineChain) -> SSAValue | str:
    """`sum over n of (sum over k of x[.., k] w[k, n]) a[n] + b[.., n]`, with length 1 in the place of n."""
    import numpy as np

    layer, total, last = chain.source, chain.total, rank(chain.source.results[0].type) - 1
    assert isinstance(layer, MatrixMultiplyOp)
    if layer.lhs_op.data is not MatrixOperation.NONE or layer.rhs_op.data is MatrixOperation.VECTOR:
        return "its operands are transposed, or vectors"
    axes = integers(total.axes)
    if last not in axes:
        return "the columns of the product are not summed"
    if any(size != 1 for size in chain.scale.shape[:last]):
        return "its rows are scaled each by a number of its own"
    columns = dims(layer.output.type)[last]
    weights = m.array(layer.rhs).astype(np.float64)
    weights = weights.swapaxes(-1, -2) if layer.rhs_op.data is MatrixOperation.TRANSPOSE else weights
    if not isinstance(columns, int) or columns < 2:
        return "there is one column"
    summed = (weights * chain.scale.reshape(-1)).sum(-1)[..., None, :]
    summed = summed / columns if total.kind.data is ReduceKind.AVG else summed
    if not _fits(summed, Float32Type()):
        return "the sums leave the range of their type"
    lhs = _wide(m, layer.lhs)
    product = m.make(ElementwiseOp, lhs, _constant(m, summed, lhs, "sums", layer), kind="prod")
    found = m.make(ReduceOp, product.output, kind="sum", axes=[last], keep_dims=True).output
    found = _shifted(m, found, chain, (last,))
    return _rest(m, found, total, [axis for axis in axes if axis != last])


def _of_pixels(m: Match, chain: AffineChain) -> SSAValue | str:
    """The same for the window axes that are summed; the others are convolved as before."""
    import numpy as np

    layer, total = chain.source, chain.total
    assert isinstance(layer, Windowed)
    axes, count = integers(total.axes), rank(layer.kernel.type)
    pixels = tuple(axis for axis in axes if axis >= _FIRST)
    if rank(layer.input.type) != count or layer.num_groups.value.data != 1:
        return "it has several batch axes, or groups"
    if layer.padding_mode.data is not PaddingMode.EXPLICIT_ROUND_DOWN:
        return "its padding follows from its lengths"
    if not pixels:
        return "no pixels are summed"
    if any(size != 1 for axis, size in enumerate(chain.scale.shape) if axis != 1):
        return "its pixels are scaled each by a number of its own"
    sums = [(axis, SummedAxis.of(one)) for axis, one in enumerate(_axes(layer), _FIRST) if axis in pixels]
    results = prod(numbers_of(dims(layer.output.type)[axis] for axis in pixels))
    number = prod(one.weights.shape[0] for _, one in sums)
    if results < _GAIN * number:
        return f"{number} sums for {results} results are not worth it"
    left = [axis for axis in range(_FIRST, count) if axis not in pixels]
    is_average = total.kind.data is ReduceKind.AVG
    if left and byte_width(element_of(layer.output.type)) < byte_width(Float32Type()) and not is_average:
        return "sums would leave the range of its type"
    cells = prod(numbers_of(dims(layer.input.type)[axis] for axis in pixels))
    scale = chain.scale.reshape(-1) * (cells / results if is_average else cells)
    channels = 0 if isinstance(layer, ConvolutionOp) else 1
    kernel = summed_kernel(m.array(layer.kernel), 1, sums)  # [.., .., sums, window axes that are left]
    wide = scale.reshape([-1 if axis == channels else 1 for axis in range(kernel.ndim)])
    kernel = kernel * wide if scale.size > 1 else kernel * scale[0]
    whole = [one for _, one in sums if one.is_whole]
    kernel = kernel * prod(float(one.weights[0, 0]) for one in whole)
    if not _fits(kernel, element_of(layer.output.type) if left else Float32Type()):
        return "the weights leave the range of their type"
    means = _means(m, layer, sums, is_wide=not left)
    found = _convolved(m, layer, means, kernel, left) if left else _multiplied(m, layer, means, kernel)
    shape = [1 if axis in pixels else size for axis, size in enumerate(dims(layer.output.type))]
    found = m.make(ShuffleOp, found, reshape_dims=DimsAttr.of(shape), zero_is_placeholder=False).output
    bias = np.zeros(1) if layer.bias is None else m.array(layer.bias).astype(np.float64)
    return _rest(m, _shifted(m, found, chain, pixels, bias), total, [one for one in axes if one not in pixels])


def _axes(layer: Windowed) -> list[WindowAxis]:
    lengths, results = (numbers_of(dims(value.type)[_FIRST:]) for value in (layer.input, layer.output))
    if isinstance(layer, DeconvolutionOp):
        pads = [window.padding() for window in layer.transposed_windows()]
    else:
        pads = list(layer.padding())
    before = numbers_of(pre for pre, _ in pads)
    sizes = zip(lengths, results, layer.sizes(), layer.strides(), layer.dilations(), before, strict=True)
    transposed = isinstance(layer, DeconvolutionOp)
    return [
        WindowAxis(length, result, taps, stride, dilation, pre, transposed)
        for length, result, taps, stride, dilation, pre in sizes
    ]


def _means(m: Match, layer: Windowed, sums: Sequence[tuple[int, SummedAxis]], *, is_wide: bool) -> SSAValue:
    """The means over the pixels that each of the sums wants, `[image, channel, sum, ..]`."""
    source = _wide(m, layer.input) if is_wide else layer.input
    batch, channels, *lengths = dims(source.type)
    parts = [(axis, one) for axis, one in sums if not one.is_whole]
    shape = [batch, channels, 1, *lengths]
    value = m.make(ShuffleOp, source, reshape_dims=DimsAttr.of(shape), zero_is_placeholder=False).output
    if parts:
        weights = joined_weights([one for _, one in parts])
        own = [1, 1, weights.shape[0], *[1] * len(lengths)]
        for (axis, _), size in zip(parts, weights.shape[1:], strict=True):
            own[axis + 1] = size
        counts = _constant(m, weights.reshape(own), value, "counts", layer)
        value = m.make(ElementwiseOp, value, counts, kind="prod").output
    axes = [axis + 1 for axis, _ in sums]
    return m.make(ReduceOp, value, kind="avg", axes=axes, keep_dims=False).output


def _multiplied(m: Match, layer: Windowed, means: SSAValue, kernel: Array) -> SSAValue:
    """The product of the means `[image, channel, sum]` with the kernel."""
    batch, channels, number = dims(means.type)
    flat = m.make(ShuffleOp, means, reshape_dims=DimsAttr.of([batch, channels * number]), zero_is_placeholder=False)
    matrix = kernel.transpose(1, 2, 0) if isinstance(layer, ConvolutionOp) else kernel.transpose(0, 2, 1)
    weights = _constant(m, matrix.reshape(-1, matrix.shape[-1]), means, "sums", layer)
    return m.make(MatrixMultiplyOp, flat.output, weights).output


def _convolved(m: Match, layer: Windowed, means: SSAValue, kernel: Array, left: Sequence[int]) -> SSAValue:
    """The convolution along the axes that are left; each sum counts as a channel."""
    batch, channels, number, *lengths = dims(means.type)
    flat = DimsAttr.of([batch, channels * number, *lengths])
    images = m.make(ShuffleOp, means, reshape_dims=flat, zero_is_placeholder=False).output
    order = (0, 1, 2) if isinstance(layer, ConvolutionOp) else (0, 2, 1)
    moved = kernel.transpose(*order, *range(3, kernel.ndim))
    joined = 1 if isinstance(layer, ConvolutionOp) else 0
    shape = [*moved.shape[:joined], moved.shape[joined] * moved.shape[joined + 1], *moved.shape[joined + 2 :]]
    weights = _constant(m, moved.reshape(shape), means, "sums", layer)
    places = [axis - _FIRST for axis in left]
    lists = {"stride": layer.strides(), "dilation": layer.dilations()}
    if isinstance(layer, DeconvolutionOp):
        pads = [window.padding() for window in layer.transposed_windows()]
        more = integers(layer.output_padding) if layer.output_padding is not None else (0,) * len(pads)
        lists["output_padding"] = more
    else:
        pads = list(layer.padding())
    lists |= {"pre_padding": tuple(a for a, _ in pads), "post_padding": tuple(b for _, b in pads)}
    given = {name: numbers_of(numbers[place] for place in places) for name, numbers in lists.items()}
    return m.make(type(layer), images, weights, None, **given).results[0]


def _shifted(m: Match, found: SSAValue, chain: AffineChain, axes: Sequence[int], bias: Array | None = None) -> SSAValue:
    """What constants add to the total."""
    import numpy as np

    sizes = numbers_of(dims(chain.source.results[0].type))
    shift = chain.shift
    if bias is not None:
        shift = shift + chain.scale * bias.reshape(1, -1, *[1] * (len(sizes) - _FIRST))
    shape = [sizes[axis] if axis in axes else shift.shape[axis] for axis in range(len(sizes))]
    whole = np.broadcast_to(shift, shape)
    added = whole.mean(tuple(axes), keepdims=True)
    added = added if chain.total.kind.data is ReduceKind.AVG else added * prod(sizes[axis] for axis in axes)
    if not added.any():
        return found
    return m.make(ElementwiseOp, found, _constant(m, added, found, "shift", *chain.ops), kind="sum").output


def _rest(m: Match, found: SSAValue, total: ReduceOp, axes: Sequence[int]) -> SSAValue:
    """The total over the axes that are left, which the layer before keeps."""
    if not axes:
        return found
    return m.make(ReduceOp, found, kind=total.kind.data.value, axes=list(axes), keep_dims=True).output


def _shaped(m: Match, found: SSAValue, total: ReduceOp) -> SSAValue:
    """In the shape and type of the total."""
    wanted = total.output.type
    if dims(found.type) != dims(wanted):
        shape = DimsAttr.of(dims(wanted))
        found = m.make(ShuffleOp, found, reshape_dims=shape, zero_is_placeholder=False).output
    if element_of(found.type) != element_of(wanted):
        found = m.insert(IdentityOp.cast(found, element_of(wanted))).output
    return found


def _wide(m: Match, value: SSAValue) -> SSAValue:
    """In float32 at least, which sums of halves do not leave."""
    element = element_of(value.type)
    if byte_width(element) >= byte_width(Float32Type()):
        return value
    return m.insert(IdentityOp.cast(value, Float32Type())).output


def _constant(m: Match, array: Array, like: SSAValue, role: str, *of: Operation) -> SSAValue:
    """A constant of the element type of `like`."""
    return m.constant(array.astype(numpy_dtype(element_of(like.type))), role, *of)


def _fits(array: Array, element: Attribute) -> bool:
    """Whether numbers stay finite in an element type."""
    import numpy as np

    with np.errstate(over="ignore"):
        return bool(np.isfinite(array.astype(numpy_dtype(element)).astype(np.float64)).all())
