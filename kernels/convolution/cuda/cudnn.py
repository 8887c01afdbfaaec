"""Convolutions by cuDNN, for builds that allow it; how long they take is known only where it is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.library_convolution import LibraryConvolutionOp
from mlirt.dialects.kernel.library_op import LibraryActivation
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.target import TF32
from mlirt.dialects.tensor_types import channels_last, dims, element_of, rank
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.cuda.library.calls import CHOICES, WORKSPACE_BYTES, launch_call, rounded_bias
from mlirt.kernels.lib.cuda.library.epilogue import LibraryEpilogue, library_epilogue
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = -1  # behind the plain loops: what nobody has measured is not taken

CUDNN = "cudnn"
"""The feature of a target whose builds may take this library."""

_CHOICES = (*CHOICES, "third", "fourth")
_IMAGES = 4  # dimensions
_ELEMENTS = (Float16Type(), BFloat16Type(), Float32Type())


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """One candidate without an estimate: the library proposes algorithms for a run's sizes, which are then timed."""
    return {} if _epilogue(op, lowering) is None else dict.fromkeys(_CHOICES, inf)


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    epilogue, order = _epilogue(op, lowering), _order(op, lowering)
    if epilogue is None or order is None or lowering.choice(op) not in _CHOICES:
        return False
    element, window = element_of(op.output.type), op.spatial()
    kernel = LibraryConvolutionOp(
        f"{CUDNN}_convolution",
        [element] * 3 + [Float32Type()] * (epilogue.bias is not None),
        CUDNN,
        _CHOICES.index(lowering.choice(op)),
        WORKSPACE_BYTES,
        stride=[stride for stride, _, _, _ in window],
        dilation=[dilation for _, dilation, _, _ in window],
        padding=[pre for _, _, pre, _ in window],
        channels_last=order != tuple(range(_IMAGES)),
        groups=op.groups.value.data,
        rounded=element == Float32Type() and TF32 in lowering.target.features,
        activation=epilogue.activation,
    )
    bias = [] if epilogue.bias is None else [rounded_bias(epilogue.bias, Float32Type(), lowering)]
    places = [lowering.placements[op.input], _taps(op, lowering, order), lowering.placements[op.output]]
    images, channels, height, width = dims(op.input.type)
    kernels, _, down, across = dims(op.kernel.type)
    sizes = (images, channels, height, width, kernels, down, across, *dims(op.output.type)[2:])
    launch_call(kernel, [*places, *bias], sizes, dims(op.output.type), op, lowering)
    return True


def _epilogue(op: ConvolutionOp, lowering: Lowering) -> LibraryEpilogue | None:
    """What the library would do with the accumulators; None where it has none such, or the build does not allow it."""
    if CUDNN not in lowering.target.features or not _is_plain(op, lowering):
        return None
    found = library_epilogue(op)
    if found is None or found.activation is LibraryActivation.GELU_TANH:
        return None
    if found.bias is None or found.access is None:
        return found
    by_channel = [index for index in found.access.indices() if index != 0]
    along = [str(index) for index in by_channel] == ["d1"]
    known = lowering.constant_array(found.bias) is not None
    return found if along and known else None


def _is_plain(op: ConvolutionOp, lowering: Lowering) -> bool:
    """Whether images in one order of memory, known kernels and equal padding on both sides are all there is."""
    elements = {element_of(value.type) for value in (op.input, op.kernel, op.output)}
    padded_alike = all(pre == post and pre >= 0 for _, _, pre, post in op.spatial())
    fits = len(elements) == 1 and elements <= set(_ELEMENTS) and padded_alike and not op.transposed.value.data
    if not fits or rank(op.input.type) != _IMAGES or lowering.constant_array(op.kernel) is None:
        return False
    return _order(op, lowering) is not None


def _order(op: ConvolutionOp, lowering: Lowering) -> Sequence[int] | None:
    """The dimensions from the outermost in memory to the innermost; None where there are gaps or other orders."""
    both = [(lowering.placements[value], dims(value.type)) for value in (op.input, op.output)]
    orders = (channels_last(_IMAGES), tuple(range(_IMAGES)))
    return next((order for order in orders if all(_is_dense(*one, order) for one in both)), None)


def _is_dense(place: Placement, sizes: Sequence[Dim], order: Sequence[int]) -> bool:
    """Whether elements lie one after the other in this order of dimensions."""
    wanted = {axis: product(sizes[inner] for inner in order[position + 1 :]) for position, axis in enumerate(order)}
    return all(sizes[axis] == 1 or place.strides[axis] == step for axis, step in wanted.items())


def _taps(op: ConvolutionOp, lowering: Lowering, order: Sequence[int]) -> Placement:
    """The kernels in memory, in the order of the images."""
    import numpy as np

    array = lowering.constant_array(op.kernel)
    assert array is not None
    transposed = np.ascontiguousarray(array.transpose(order))
    return Placement(lowering.placements.new_weight(transposed, "taps"), 0, ())
