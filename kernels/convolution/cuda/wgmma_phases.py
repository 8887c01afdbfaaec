"""Deconvolutions on Hopper GPUs by warpgroups: the convolutions for all remainders of the output position at once.

Output position `y` has `y + pre = s * a + r`; all positions with remainder `r` are a convolution of the input with
every `s`-th tap of the kernel (`kernels/lib/deconvolution_phases.py`). Each is an implicit GEMM on im2col tiles that
TMA copies; they are a batch, whose entries read the same pixels and write each to its own places. What the last steps
compute beyond the result is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, is_float, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.group_convolution import images_of, kind_of_lines, packed_by_taps, reaches
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, estimates_of, tile_of
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes, Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.packing import in_fragment_order
from mlirt.kernels.lib.cuda.warpgroups.planes import planes_cost
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import (
    ResultShape,
    RowEpilogue,
    is_pointwise,
    large_extras,
    result_width,
    scalar_operations,
    width_of_results,
)
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, MatrixSource, WindowShape, WindowSource
from mlirt.kernels.lib.deconvolution_phases import (
    PhaseAxis,
    phase_axes,
    remainder_kernels,
    undilated,
    undilated_windows,
)
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.words import clamp, extent, is_inside
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_MIN_CHANNELS = 8  # of the result
_MIN_PIXELS = 4


@dataclass(frozen=True)
class Deconvolution:
    """What warpgroups compute: windows of the input for all remainders, `columns` channels of each."""

    kind: Kind
    axes: tuple[PhaseAxis, ...]
    window: WindowShape
    images: MappedMemory
    columns: int

    @property
    def remainders(self) -> int:
        return prod(axis.stride for axis in self.axes)

    @property
    def pixels(self) -> Dim:
        """Steps of the convolutions, of all images."""
        return self.images.sizes[0] * product([axis.positions for axis in self.axes])

    @property
    def steps(self) -> int:
        """Tiles along the depth."""
        return prod(self.window.kernel) * -(-self.window.channels // self.kind.depth)


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a deconvolution takes, about, with each tile."""
    found = deconvolution(op, lowering)
    if found is None:
        return {}
    planes = planes_cost(op, lowering) * found.axes[-1].stride  # pixels of a remainder lie apart
    return {name: cost + planes for name, cost in estimates_of(_work(op, found, lowering)).items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found = deconvolution(op, lowering)
    tile = None if found is None else tile_of(_work(op, found, lowering), lowering.choice(op))
    if found is None or tile is None:
        return False
    _build(op, found, tile, lowering)
    return True


def deconvolution(op: ConvolutionOp, lowering: Lowering) -> Deconvolution | None:
    """What there is to do; None where the tactic does not apply."""
    kind, weights = kind_of_lines(op, lowering), lowering.known(op.kernel)
    if not op.transposed.value.data or op.groups.value.data != 1 or kind is None or weights is None:
        return None
    if not is_float(kind.element) or accumulator_type(op.epilogue) != kind.accumulator_type or not is_pointwise(op):
        return None
    axes, images = phase_axes(op, undilated_windows(op, weights.shape[2:])), images_of(op, lowering)
    channels, columns = weights.shape[:2]
    if axes is None or not images.fits() or columns < _MIN_CHANNELS:
        return None
    window = _window(axes, channels)
    spatial = [(1, 1, pre, post) for pre, post in zip(window.pre, window.post, strict=True)]
    found = Deconvolution(kind, tuple(axes), window, images, columns)
    is_small = typical(found.pixels, typical_values(lowering.block)) <= _MIN_PIXELS
    return found if reaches(spatial, window.kernel) and not is_small else None


def _window(axes: Sequence[PhaseAxis], channels: int) -> WindowShape:
    """How the convolution of each remainder walks over the input."""
    ones = (1,) * len(axes)
    pre, post = tuple(axis.pre_padding for axis in axes), tuple(int(str(axis.post_padding)) for axis in axes)
    taps, positions = tuple(axis.taps for axis in axes), tuple(axis.positions for axis in axes)
    return WindowShape(taps, ones, ones, pre, post, positions, channels)


def _work(op: ConvolutionOp, found: Deconvolution, lowering: Lowering) -> GroupWork:
    return GroupWork(
        typical(found.pixels, typical_values(lowering.block)),
        found.columns,
        found.remainders,
        found.steps,
        may_split=False,
        extras=large_extras(op),
        operations=scalar_operations(op),
        width=result_width(op),
        line=found.kind.line,
        device=lowering.target.gpu,
    )


def _build(op: ConvolutionOp, found: Deconvolution, tile: GroupTile, lowering: Lowering) -> None:
    kind = found.kind
    k, width = lowering.kernel("convolution"), width_of_results(op, tile, found.columns)
    shape = ResultShape((), (0, *range(2, rank(op.output.type))), (1,))
    epilogue = RowEpilogue(k, op, shape, lowering, width)
    left = _SharedWindows(k, found.images, tile.rows, found.window, kind.line)
    dilations = tuple(dilation for _, dilation, _, _ in op.spatial())
    packed = lowering.packed(op.kernel, partial(_packed, found.axes, dilations, kind.depth, width))
    buffer, sizes = lowering.placements.new_weight(packed, "packed"), packed.array.shape
    memory = MappedMemory(buffer, kind.element, 0, sizes, (sizes[1] * sizes[2], sizes[2], 1))
    flags = {"by_depth": False, "known": True, "in_fragment_order": True}
    right = MatrixSource(k, memory, tile.columns, (0,), line=kind.line, **flags)
    work = GroupSizes(found.pixels, found.columns, (found.remainders,), found.steps, shares_rows=found.remainders > 1)
    places = _Places(found, dims(op.output.type)[2:])
    GroupProduct(k, tile, work, kind, (left, right), epilogue, places).build(op)


def _packed(axes: tuple[PhaseAxis, ...], dilations: Sequence[int], depth: int, width: int, kernel: Array) -> Array:
    """`[remainder, output channel, taps and channels]`, the output channels in the order of register fragments."""
    remainders = prod(axis.stride for axis in axes)
    columns = packed_by_taps(depth, remainder_kernels(undilated(kernel, dilations), axes, 1))
    return in_fragment_order(columns.reshape(remainders, -1, columns.shape[-1]), width)


class _SharedWindows(WindowSource):
    """Windows that all entries of the batch read."""

    def start_tile(self, first: Value, batch: Sequence[Value]) -> None:
        super().start_tile(first, ())


@dataclass(frozen=True)
class _Places:
    """Where the results of a remainder lie: the pixels of the result that `sizes` span, and of each image."""

    found: Deconvolution
    sizes: Sequence[Dim]

    @kernel
    def place(self, work: Work, row: Value) -> tuple[Value, bool | None]:
        """The pixel of the result, and whether it is one: else some pixel."""
        rows = extent(self.found.pixels)
        here = work.row + row
        exists = here < rows
        pixel, remainder = min(here, rows - 1), work.batch
        at: list[Value] = []
        for axis, size in reversed(list(zip(self.found.axes, self.sizes, strict=True))):
            positions, stride = extent(axis.positions), axis.stride
            along = pixel % positions * stride + (remainder % stride - axis.cut)
            if not axis.is_whole:
                exists = exists and is_inside(along, extent(size))
                along = clamp(along, extent(size))
            at = [along, *at]
            pixel, remainder = pixel // positions, remainder // stride
        for along, size in zip(at, self.sizes, strict=True):
            pixel = pixel * extent(size) + along
        return pixel, exists
