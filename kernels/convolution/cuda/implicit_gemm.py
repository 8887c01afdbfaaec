"""Implicit GEMM: convolution and deconvolution on a GPU as packed weights times the im2col view of the input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.layout import arranged, vector_width
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.placement import Packed
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.cuda.tiles.loaders import Matrix, MatrixLoader
from mlirt.kernels.lib.cuda.tiles.problem import Problem, Sizes, multiplies_halves, unit_kind
from mlirt.kernels.lib.cuda.tiles.product import Operands, Place, lower_product
from mlirt.kernels.lib.cuda.tiles.results import Epilogue
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemories
from mlirt.kernels.lib.cuda.tiles.window_loader import Window, WindowLoader, column_count
from mlirt.kernels.lib.language import Value, builder, kernel
from mlirt.kernels.lib.language.words import extent
from mlirt.kernels.lib.loops.loop_nest import Nest
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_MIN_ROWS = 8  # output channels of a group; a tile would be mostly empty with less
_MIN_COLUMNS = 4  # pixels; with less, a warp per result reads the weights in order
_SCATTERED = 6  # times slower, as measured, where neighbouring pixels are no neighbours in memory
_MAX_PADDING_RATIO = 1.25  # of lines, when each tap starts a new tile


@dataclass(frozen=True)
class Product:
    """A convolution that tiles can compute; the sizes are those of a group: output channels, input channels, taps."""

    problem: Problem
    window: Window
    sizes: tuple[int, int, int]


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    found = _product(op, lowering)
    if found is None:
        return {}
    slower = 1 if lowering.placements[op.input].strides[-1] == 1 else _SCATTERED
    return {name: cost * slower for name, cost in found.problem.estimates().items()}


def _product(op: ConvolutionOp, lowering: Lowering) -> Product | None:
    element, weights = element_of(op.kernel.type), lowering.known(op.kernel)
    if element != f32 and not multiplies_halves(element, lowering.target):
        return None
    if weights is None or element_of(op.input.type) not in (element, f32):
        return None
    groups, transposed = op.groups.value.data, bool(op.transposed.value.data)
    rows, channels, taps = group_sizes(weights.shape, groups, transposed=transposed)
    if accumulator_type(op.epilogue) != f32 or rows < _MIN_ROWS or channels * taps == 0:
        return None
    sizes = Sizes(rows, column_count(op), channels * taps, groups)
    if taps == 1 and typical(sizes.columns, typical_values(lowering.block)) <= _MIN_COLUMNS:
        return None
    window = _window(op, channels, groups, lowering)
    steps = partial(_steps, window)
    one_by_one = is_half(element) and window.wide == 1
    is_scattered = one_by_one or _is_scattered(op, lowering)
    return Product(
        Problem(sizes, element, unit_kind(element, element, lowering.target), lowering, steps, is_scattered),
        window,
        (rows, channels, taps),
    )


def _is_scattered(op: ConvolutionOp, lowering: Lowering) -> bool:
    """Whether neighbouring pixels are far apart: tiles go along the pixels."""
    place = lowering.placements[op.input]
    return dims(op.input.type)[-1] != 1 and place.strides[-1] != 1


def _steps(window: Window, shape: WarpTile) -> int:
    return ordered(window, shape.depth).steps(shape.depth)


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found = _product(op, lowering)
    plan = None if found is None else found.problem.plan(lowering.choice(op))
    if found is None or plan is None:
        return False
    window = ordered(found.window, plan.shape.depth)
    half = is_half(plan.element)
    groups, transposed = op.groups.value.data, bool(op.transposed.value.data)
    order = partial(pack, window, plan.shape.rows, plan.shape.depth, groups, transposed=transposed, by_depth=not half)
    packed = lowering.packed(op.kernel, order)

    make = partial(loaders, packed, window, not half)
    operands = Operands(not half, True, (True, not half or window.wide > 1), make)
    epilogue = Epilogue(op, row_axis=1)
    indices = partial(_indices, found.sizes[0], window)
    lower_product(plan, operands, epilogue, frozenset({1, 2}), indices, lowering, "convolution")
    return True


@kernel
def loaders(
    packed: Packed, window: Window, by_depth: bool, place: Place, tiles: TileMemories
) -> tuple[MatrixLoader, WindowLoader]:
    """The loaders of packed weights, whose lines go `by_depth` or by rows, and of the pixels of a window."""
    lines, width = packed.array.shape[1:]
    base = place.batch * (lines * width)
    weights = builder().weights(packed, "packed")
    matrix = Matrix(weights, base, width, lines, width, by_depth, widest(packed.array))
    left = MatrixLoader(matrix, tiles.left, place.thread, place.threads, place.row)
    right = WindowLoader(window, tiles.right, place.thread, place.threads, place.column, place.batch)
    return left, right


def group_sizes(sizes: Sequence[int], groups: int, *, transposed: bool) -> tuple[int, int, int]:
    """Of a group: the output channels, the input channels, and the taps."""
    first, second, *window = sizes
    return (second, first // groups, prod(window)) if transposed else (first // groups, second, prod(window))


def by_group(weights: Array, groups: int, *, transposed: bool) -> Array:
    """The kernel as `[group, output channel of the group, input channel of the group, tap]`."""
    taps = weights[0, 0].size
    if transposed:
        split = weights.reshape(groups, weights.shape[0] // groups, weights.shape[1], taps)
        return split.swapaxes(1, 2)
    return weights.reshape(groups, weights.shape[0] // groups, weights.shape[1], taps)


def pack(
    window: Window, rows: int, depth: int, groups: int, kernel: Array, *, transposed: bool, by_depth: bool
) -> Array:
    """Weights in the order in which tiles of `rows` x `depth` are read, filled up with zeros to whole tiles.

    The result is `[group, line, row]` with `by_depth`, else `[group, row, line]`; lines go tap by tap.
    """
    weights = by_group(kernel, groups, transposed=transposed)
    _, _, channels, taps = weights.shape
    per_tap = channels if window.is_flat else window.tiles_per_tap(depth) * depth
    lines = arranged(weights, "g (m n) c t", "g (m n) (t c)", n=rows, c=per_tap)
    length = max(window.steps(depth) * depth, taps * per_tap)
    return arranged(lines, "g n k", "g k n" if by_depth else "g n k", k=length)


def widest(packed: Array) -> int:
    """Elements of 16 bytes."""
    return 16 // packed.dtype.itemsize


def _window(op: ConvolutionOp, channels: int, groups: int, lowering: Lowering) -> Window:
    """The window with the widest access that its shape allows; whether it is flat is decided later."""
    sizes, steps = dims(op.input.type), lowering.placements[op.input].strides
    is_point = all(size == 1 for size in dims(op.kernel.type)[2:])
    stays = sizes[2:] == dims(op.output.type)[2:] and all(
        (stride, pre, post) == (1, 0, 0) for stride, _, pre, post in op.spatial()
    )
    narrow = Window(op, channels, groups, is_flat=False, wide=1)
    rows_join = all(
        steps[axis] == steps[axis + 1] * sizes[axis + 1] or sizes[axis] == 1 for axis in range(2, len(sizes) - 1)
    )
    if narrow.is_rounded or not (is_point and stays and rows_join and (steps[-1] == 1 or sizes[-1] == 1)):
        return narrow
    wide = widest_access(op.input, [steps[0], steps[1]], lowering)
    wide = vector_width(wide, narrow.pixels) if isinstance(narrow.pixels, int) else 1
    return Window(op, channels, groups, is_flat=False, wide=wide)


def ordered(window: Window, depth: int) -> Window:
    """Lines without gaps where tiles would else be mostly empty."""
    padded = window.tiles_per_tap(depth) * depth
    flat = window.taps > 1 and padded > _MAX_PADDING_RATIO * window.channels
    return Window(window.op, window.channels, window.groups, flat, window.wide)


@kernel
def _indices(channels: int, window: Window, nest: Nest, column: Value, group: Value) -> Callable[[Value], list[Value]]:
    """The indices along the loops of the result's nest: image, channel, pixel or its coordinates."""
    image, pixel = window.place_of(column)
    found, first = pixel_indices(nest, image, pixel), group * channels

    def at(row: Value) -> list[Value]:
        return [first + row if index is None else index for index in found]

    return at


@kernel
def pixel_indices(nest: Nest, image: Value, pixel: Value) -> list[Value | None]:
    """The indices of an image, and of a pixel or its coordinates, along the loops of the result's nest; None for that
    along the channels.
    """
    found = list[Value | None]()
    for size, (first, *_) in reversed(list(zip(nest.extents, nest.groups, strict=True))):
        if first > 2:
            found = [pixel % extent(size), *found]
            pixel = pixel // extent(size)
        else:
            found = [(image, None, pixel)[first], *found]
    return found
