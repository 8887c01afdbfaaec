"""Int8 convolutions on a GPU as products by the matrix units of warps, wherever the channels lie.

Pixels are rows of the product, output channels its columns; the depth goes tap by tap, in each along the channels of
the group. Cells outside of the input may have any value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.layout import arranged, vector_width
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.implicit_gemm import group_sizes, pixel_indices
from mlirt.kernels.lib.builder.placement import Packed
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.cuda.tiles.loaders import Matrix, MatrixLoader
from mlirt.kernels.lib.cuda.tiles.pixel_loader import PixelLoader, Pixels
from mlirt.kernels.lib.cuda.tiles.problem import Problem, Sizes, unit_kind
from mlirt.kernels.lib.cuda.tiles.product import Operands, Place, lower_product
from mlirt.kernels.lib.cuda.tiles.results import Epilogue
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemories
from mlirt.kernels.lib.cuda.warpgroups.packing import packed_rows
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import large_extras
from mlirt.kernels.lib.language import Value, builder, kernel
from mlirt.kernels.lib.language.words import extent
from mlirt.kernels.lib.loops.loop_nest import Nest
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_PIECE = 16  # bytes that packed weights are read at once
_MIN_CHANNELS = 8  # of a group of the result; a tile would be mostly empty with less
_MIN_PIXELS = 4  # with less, a warp per result reads the weights in order


@dataclass(frozen=True)
class Product:
    """A convolution that tiles can compute; with so many output channels of a group."""

    problem: Problem
    pixels: Pixels
    channels: int


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    found = _product(op, lowering)
    if found is None:
        return {}
    results = typical(product(dims(op.output.type)), typical_values(lowering.block))
    moves = lowering.target.gpu.moves
    more = results * (moves.int8_result + moves.int8_extra * large_extras(op))
    return {name: cost + more for name, cost in found.problem.estimates().items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found = _product(op, lowering)
    plan = None if found is None else found.problem.plan(lowering.choice(op))
    if found is None or plan is None:
        return False
    packed = lowering.packed(op.kernel, partial(_packed, op.groups.value.data, plan.shape.columns))
    operands = Operands(
        left_by_depth=False,
        right_by_depth=False,
        are_async=(found.pixels.is_async, True),
        make=partial(_loaders, found.pixels, packed),
    )
    borders, indices = frozenset({1, 2}), partial(_indices, found)
    lower_product(plan, operands, Epilogue(op), borders, indices, lowering, "convolution")
    return True


@kernel
def _loaders(pixels: Pixels, packed: Packed, place: Place, tiles: TileMemories) -> tuple[PixelLoader, MatrixLoader]:
    lines, width = packed.array.shape[1:]
    base = place.batch * (lines * width)
    weights = builder().weights(packed, "packed")
    matrix = Matrix(weights, base, width, lines, width, by_depth=False, wide=_PIECE)
    left = PixelLoader(pixels, tiles.left, place.thread, place.threads, place.row, place.batch)
    return left, MatrixLoader(matrix, tiles.right, place.thread, place.threads, place.column)


def _product(op: ConvolutionOp, lowering: Lowering) -> Product | None:
    kind = unit_kind(element_of(op.input.type), element_of(op.kernel.type), lowering.target)
    weights, groups = lowering.known(op.kernel), op.groups.value.data
    if kind is None or byte_width(element_of(op.input.type)) != 1 or weights is None or op.transposed.value.data:
        return None
    if accumulator_type(op.epilogue) != kind.accumulator_type or rank(op.input.type) < 3:
        return None
    count, channels, taps = group_sizes(weights.shape, groups, transposed=False)
    pixels = Pixels(op, channels, _wide(op, channels, lowering), op.padding_value.value.data)
    few = typical(pixels.count, typical_values(lowering.block)) <= _MIN_PIXELS
    if count < _MIN_CHANNELS or few or channels * taps == 0:
        return None
    sizes = Sizes(pixels.count, count, pixels.depth, groups)
    return Product(Problem(sizes, element_of(op.input.type), kind, lowering, None, pixels.wide == 1), pixels, count)


def _wide(op: ConvolutionOp, channels: int, lowering: Lowering) -> int:
    """Channels that one access reads: neighbours of one group."""
    steps = lowering.placements[op.input].strides
    if steps[1] != 1:
        return 1
    return vector_width(widest_access(op.input, [steps[0], *steps[2:]], lowering), channels)


def _packed(groups: int, columns: int, kernel: Array) -> Array:
    """`[group, output channel, place along the depth]`, filled up with zeros to whole tiles of `columns` and pieces."""

    taps = kernel.reshape(groups, len(kernel) // groups, kernel.shape[1], -1)
    lines = packed_rows(arranged(taps, "g n c t", "g n (t c)"))
    return arranged(lines, "g (p n) k", "g (p n) k", n=columns)


@kernel
def _indices(found: Product, nest: Nest, column: Value, group: Value) -> Callable[[Value], list[Value]]:
    """The indices along the loops of the result's nest: image, channel, pixel or its coordinates."""
    channel = group * found.channels + column

    def at(row: Value) -> list[Value]:
        per_image = extent(found.pixels.per_image)
        image, pixel = row // per_image, row % per_image
        return [channel if index is None else index for index in pixel_indices(nest, image, pixel)]

    return at
