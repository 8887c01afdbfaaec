"""Deconvolutions with strides on a GPU: the convolutions for all remainders of the output position in one launch.

Output position `y` has `y + pre = s * a + r`; all positions with remainder `r` are a convolution of the input with
every `s`-th tap of the kernel. Remainders are more rows of one product, which writes each to its own places; what the
last steps compute beyond the result is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import Block

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.tensor_types import dims, element_of, is_half, tensor
from mlirt.kernels.convolution.cuda.implicit_gemm import loaders, ordered, pack
from mlirt.kernels.lib.cuda.tiles.problem import Problem, Sizes, multiplies_halves, unit_kind
from mlirt.kernels.lib.cuda.tiles.product import Operands, lower_product
from mlirt.kernels.lib.cuda.tiles.results import Epilogue
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.window_loader import Window, column_count
from mlirt.kernels.lib.deconvolution_phases import (
    PhaseAxis,
    phase_axes,
    remainder_kernels,
    undilated,
    undilated_windows,
)
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.words import extent, is_inside
from mlirt.kernels.lib.loops.loop_nest import Nest
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_MIN_ROWS = 8  # channels of all remainders; a tile would be mostly empty with less
_MAX_ROWS = 8192


@dataclass(frozen=True)
class Product:
    """A deconvolution that tiles can compute: its axes, and how a convolution of all remainders reads the input."""

    problem: Problem
    window: Window
    axes: Sequence[PhaseAxis]
    each: int
    """Channels of a group of the result."""


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    found = _product(op, lowering)
    if found is None:
        return {}
    costs = found.problem.estimates()
    found.window.op.drop_all_references()
    return costs


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found = _product(op, lowering)
    plan = None if found is None else found.problem.plan(lowering.choice(op))
    if found is None or plan is None:
        return False
    window, half = ordered(found.window, plan.shape.depth), is_half(plan.element)
    groups, dilations = op.groups.value.data, tuple(dilation for _, dilation, _, _ in op.spatial())
    order = partial(pack, window, plan.shape.rows, plan.shape.depth, groups, transposed=False, by_depth=not half)
    axes = tuple(found.axes)
    packed = lowering.packed(op.kernel, partial(_packed, axes, groups, dilations, order))

    operands = Operands(not half, True, (True, not half), partial(loaders, packed, window, not half))
    epilogue = Epilogue(op, row_axis=1)
    borders = frozenset(range(1, len(dims(op.output.type))))
    whole = all(axis.is_whole for axis in axes)
    exists = None if whole else partial(_exists, op)
    lower_product(plan, operands, epilogue, borders, partial(_indices, found), lowering, "convolution", exists)
    window.op.drop_all_references()
    return True


def _product(op: ConvolutionOp, lowering: Lowering) -> Product | None:
    element, weights = element_of(op.kernel.type), lowering.known(op.kernel)
    strides = [stride for stride, _, _, _ in op.spatial()]
    if weights is None or not op.transposed.value.data or prod(strides) == 1:
        return None
    if element != f32 and not multiplies_halves(element, lowering.target):
        return None
    if element_of(op.input.type) not in (element, f32):
        return None
    axes = phase_axes(op, undilated_windows(op, weights.shape[2:]))
    groups, each = op.groups.value.data, weights.shape[1]
    rows, channels = each * prod(strides), weights.shape[0] // groups
    if axes is None or accumulator_type(op.epilogue) != f32 or not _MIN_ROWS <= rows <= _MAX_ROWS or channels == 0:
        return None
    window = Window(_convolution(op, axes, rows * groups, channels), channels, groups, is_flat=False, wide=1)
    sizes = Sizes(rows, column_count(window.op), channels * prod(axis.taps for axis in axes), groups)
    place = lowering.placements[op.input]
    scattered = is_half(element) or (dims(op.input.type)[-1] != 1 and place.strides[-1] != 1)
    kind = unit_kind(element, element, lowering.target)
    problem = Problem(sizes, element, kind, lowering, partial(_steps, window), scattered)
    return Product(problem, window, axes, each)


def _convolution(op: ConvolutionOp, axes: Sequence[PhaseAxis], rows: int, channels: int) -> ConvolutionOp:
    """The convolution that gives the results of all remainders as channels; it is in no block."""
    kernel = Block(arg_types=[tensor(element_of(op.kernel.type), [rows, channels, *(axis.taps for axis in axes)])])
    accumulator, count = accumulator_type(op.epilogue), len(axes)
    result = tensor(accumulator, [dims(op.output.type)[0], rows, *(axis.positions for axis in axes)])
    return ConvolutionOp(
        op.input,
        kernel.args[0],
        result,
        identity_region(accumulator),
        stride=[1] * count,
        dilation=[1] * count,
        pre_padding=[axis.pre_padding for axis in axes],
        post_padding=[int(str(axis.post_padding)) for axis in axes],
        groups=op.groups.value.data,
    )


def _steps(window: Window, shape: WarpTile) -> int:
    return ordered(window, shape.depth).steps(shape.depth)


def _packed(
    axes: Sequence[PhaseAxis], groups: int, dilations: Sequence[int], order: Callable[[Array], Array], kernel: Array
) -> Array:
    """The kernels of all remainders, as rows of a product."""
    return order(remainder_kernels(undilated(kernel, dilations), axes, groups))


@kernel
def _indices(found: Product, nest: Nest, column: Value, group: Value) -> Callable[[Value], list[Value]]:
    """The indices along the loops of the result's nest: image, channel, and where a remainder lies on each axis."""
    image, pixel = found.window.place_of(column)
    steps = list[Value]()
    for axis in reversed(found.axes):
        steps = [pixel % extent(axis.positions), *steps]
        pixel = pixel // extent(axis.positions)
    starts = [step * axis.stride - axis.cut for step, axis in zip(steps, found.axes, strict=True)]

    def at(row: Value) -> list[Value]:
        remainder, own, places = row // found.each, row % found.each, list[Value]()
        for start, axis in reversed(list(zip(starts, found.axes, strict=True))):
            places = [start + remainder % axis.stride, *places]
            remainder = remainder // axis.stride
        places = [image, group * found.each + own, *places]
        return [places[axes[0]] for axes in nest.groups]

    return at


@kernel
def _exists(op: ConvolutionOp, nest: Nest, at: Sequence[Value]) -> bool:
    """Whether places along the spatial axes are inside of the result."""
    sizes = dims(op.output.type)
    return all(
        is_inside(place, extent(sizes[axes[0]])) for place, axes in zip(at, nest.groups, strict=True) if axes[0] > 1
    )
