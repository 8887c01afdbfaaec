"""A copy of an image with few channels, in which what a row of a window needs of it lies side by side.

Channels are filled up with zeros so that positions of the window are 16 bytes apart. Where the window moves by several
cells, so many cells along each dimension count as channels of one position: the window has fewer positions then, which
it visits one by one. A copy of 2 x 2 cells of 3 channels, filled up to 16:

    cells  a b c d      positions  [a b e f]  [c d g h]
           e f g h
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as places_of
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.layout import Layout, arranged
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_half
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, WindowShape
from mlirt.kernels.lib.language import Value, build, builder, kernel
from mlirt.kernels.lib.language.simt_words import Access, fragment, store_fragment
from mlirt.kernels.lib.language.words import (
    constant,
    extent,
    is_inside,
    parallel,
    place,
    static_range,
    strided,
    widened,
)
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_PIECE = 16  # bytes that positions of the window are multiples of
_POWERS = tuple(2**k for k in range(8))


def kind_of_rows(op: ConvolutionOp, lowering: Lowering) -> Kind | None:
    """What matrix units do with the elements of a copy, which rounds float32 to the halves of the kernel."""
    given, weights = element_of(op.input.type), element_of(op.kernel.type)
    return Kind.of(weights if given == f32 and is_half(weights) else given, weights, lowering.target)


@dataclass(frozen=True)
class RowCopy:
    """`sizes` positions (image, rows.., in a row, channels) of `fold` cells along each spatial dimension.

    Along dimensions with `padding` the copy begins so many cells before the image. A window has `taps` positions and
    moves by `step`; `line` elements of a row of it are multiplied at once.
    """

    sizes: tuple[Dim, ...]
    fold: tuple[int, ...]
    padding: tuple[int, ...]
    taps: tuple[int, ...]
    step: tuple[int, ...]
    line: int
    kind: Kind

    @staticmethod
    def of(op: ConvolutionOp, kind: Kind) -> RowCopy | None:
        """The one of which a window reads less; None where the taps along a row of the window are no neighbours."""
        rank, strides = len(op.spatial()), tuple(stride for stride, *_ in op.spatial())
        found = [_copy(op, kind, fold) for fold in dict.fromkeys([(1,) * rank, strides])]
        return min([one for one in found if one is not None], key=lambda one: one.window_bytes, default=None)

    @property
    def channels(self) -> int:
        """Of a position."""
        channels = self.sizes[-1]
        assert isinstance(channels, int)
        return channels

    @property
    def is_folded(self) -> bool:
        """Whether a position has several cells; the copy has the padding of all dimensions then."""
        return any(size > 1 for size in self.fold)

    @property
    def lines(self) -> int:
        """Of a window."""
        return prod(self.taps[:-1])

    @property
    def window_bytes(self) -> int:
        return self.lines * self.line * byte_width(self.kind.element)

    @property
    def bytes(self) -> Dim:
        return product(self.sizes) * byte_width(self.kind.element)

    def window(self, op: ConvolutionOp) -> WindowShape:
        """The window without its width."""
        _, dilation, pre, post = (list(one) for one in zip(*op.spatial(), strict=True))
        for axis in range(len(pre)) if self.is_folded else [-1]:
            dilation[axis], pre[axis], post[axis] = 1, 0, 0
        walk = ((*self.step[:-1], 1), tuple(dilation), tuple(pre), tuple(post))
        return WindowShape((*self.taps[:-1], 1), *walk, dims(op.output.type)[2:], self.line)

    def as_images(self, op: ConvolutionOp, buffer: SSAValue) -> MappedMemory:
        """The copy as images whose pixels are the positions of the window along a row."""
        steps = list(Layout.row_major(self.sizes).strides())
        steps[-2] = self.step[-1] * self.channels
        sizes = (*self.sizes[:-2], dims(op.output.type)[-1], self.line)
        return MappedMemory(buffer, self.kind.element, 0, sizes, tuple(steps))

    def packed(self, weights: Array) -> Array:
        """Weights as `[output channel, lines of the rows of the window]`, each line filled up with zeros."""
        import numpy as np

        count, depth, rank = weights.shape[0], weights.shape[1], len(self.fold)
        extents = [taps * fold for taps, fold in zip(self.taps, self.fold, strict=True)]
        whole = np.zeros((count, depth, *extents), weights.dtype)
        whole[(slice(None), slice(None), *map(slice, weights.shape[2:]))] = weights
        split = whole.reshape(count, depth, *(size for pair in zip(self.taps, self.fold, strict=True) for size in pair))
        order = (0, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2), 1)
        cells = split.transpose(order).reshape(count, self.lines, self.taps[-1], -1)
        return arranged(cells, "n l t c", "n (l t c)", t=self.line // self.channels, c=self.channels)

    def make(self, op: ConvolutionOp, buffer: SSAValue, lowering: Lowering) -> None:
        """`parallel (image, rows.., position) { store the channels of its cells, or zeros in the padding }`."""
        k = lowering.kernel("rows")
        build(k, self._make, op, buffer)
        k.finish(op)

    @kernel
    def _make(self, op: ConvolutionOp, buffer: SSAValue) -> None:
        k, sizes, element = builder(), dims(op.input.type), scalar_type(self.kind.element)
        zero, source, steps = constant(0, element), k.buffer(op.input), k.strides(op.input)
        target = k.memory(buffer, element)
        for loops in parallel(self.sizes[:-1]):
            values = list[Value]()
            for cell in places_of(*map(range, self.fold)):
                at = self._cell(loops[1:], cell)
                for channel in static_range(sizes[1] if isinstance(sizes[1], int) else 0):
                    loaded = zero
                    if self._inside(at, sizes[2:]):
                        loaded = widened(strided(source, *steps)[loops[0], channel, *at], element)
                    values.append(loaded)
            values += [zero] * (self.channels - len(values))
            index = place(0)
            for axis in static_range(len(loops)):
                index = index + loops[axis] * extent(product(self.sizes[axis + 1 :]))
            store_fragment(fragment(values), target, index, Access(range(self.channels), wide=True))

    @kernel
    def _cell(self, positions: Sequence[Value], cell: tuple[int, ...]) -> list[Value]:
        """Where a cell of a position is in the image."""
        places = zip(positions, self.fold, cell, self.padding, strict=True)
        return [position * fold + (own - before) for position, fold, own, before in places]

    @kernel
    def _inside(self, at: Sequence[Value], sizes: tuple[Dim, ...]) -> bool:
        """Whether a cell is one of the image, which all are along dimensions that are the image's own."""
        inside = True
        for axis, (cell, size) in enumerate(zip(at, sizes, strict=True)):
            if self.fold[axis] > 1 or self.padding[axis] or self.sizes[1 + axis] != size:
                inside = inside and is_inside(cell, extent(size))
        return inside


def _copy(op: ConvolutionOp, kind: Kind, fold: tuple[int, ...]) -> RowCopy | None:
    """The copy that takes so many cells for a position."""
    piece, count = _PIECE // byte_width(kind.element), dims(op.input.type)[1]
    window, made = dims(op.kernel.type)[2:], dims(op.output.type)[2:]
    folds, spatial = any(size > 1 for size in fold), op.spatial()
    step = tuple(stride // size for (stride, *_), size in zip(spatial, fold, strict=True))
    taps = tuple(-(-size // cells) for size, cells in zip(window, fold, strict=True) if isinstance(size, int))
    if not isinstance(count, int) or len(taps) < len(fold) or not isinstance(made[-1], int):
        return None
    dilated = [dilation != 1 and size > 1 for (_, dilation, _, _), size in zip(spatial, taps, strict=True)]
    cells = count * prod(fold)
    channels = next((size for size in _POWERS if size >= cells and step[-1] * size % piece == 0), 0)
    if not channels or channels > kind.depth or (any(dilated) if folds else dilated[-1]):
        return None
    kind = kind.fitting(taps[-1] * channels * byte_width(kind.element))
    line = -(-taps[-1] * channels // kind.depth) * kind.depth
    whole = max(1, piece // channels)  # rows start at multiples too
    width = -(-((made[-1] - 1) * step[-1] + line // channels) // whole) * whole
    before = [pre for _, _, pre, _ in spatial]
    others = [length - 1 + size for length, size in zip(made, taps, strict=True)] if folds else dims(op.input.type)[2:]
    padding = tuple(before) if folds else (*[0] * (len(before) - 1), before[-1])
    return RowCopy((dims(op.input.type)[0], *others[:-1], width, channels), fold, padding, taps, step, line, kind)
