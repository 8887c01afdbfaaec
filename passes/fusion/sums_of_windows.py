"""Which cells of an image a sum over a convolution's results reads by each tap, and how often; without IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class WindowAxis:
    """An axis along which a window slides over `length` cells for `results` ones.

    `transposed`: a cell adds to the results at `cell * stride + tap * dilation - pre`; else a result reads cells there.
    """

    length: int
    results: int
    taps: int
    stride: int
    dilation: int
    pre: int
    transposed: bool

    def counts(self) -> Array:
        """How many results read a cell by a tap, `[tap, cell]`."""
        import numpy as np

        counts = np.zeros((self.taps, self.length), np.int64)
        moving, fixed = (self.length, self.results) if self.transposed else (self.results, self.length)
        for tap in range(self.taps):
            reached = np.arange(moving) * self.stride + tap * self.dilation - self.pre
            inside = (reached >= 0) & (reached < fixed)
            cells = np.flatnonzero(inside) if self.transposed else reached[inside]
            counts[tap] = np.bincount(cells, minlength=self.length)
        return counts


@dataclass(frozen=True)
class SummedAxis:
    """The different sums of cells that taps want: `weights` is `[sum, cell]`, `of_tap` tells which each tap wants.

    `is_whole`: there is one, of all cells alike, `weights` times each.
    """

    weights: Array
    of_tap: tuple[int, ...]
    is_whole: bool

    @staticmethod
    def of(axis: WindowAxis) -> SummedAxis:
        import numpy as np

        different, of_tap = np.unique(axis.counts(), axis=0, return_inverse=True)
        is_whole = len(different) == 1 and bool((different == different[0, 0]).all())
        return SummedAxis(different, tuple(int(number) for number in of_tap.reshape(-1)), is_whole)


def joined_weights(axes: Sequence[SummedAxis]) -> Array:
    """How often each sum counts a cell, `[sums of the first axis * of the second .., cells of the first, ..]`."""
    import numpy as np

    found = np.ones((1,), np.int64)
    for axis in axes:
        number, cells = axis.weights.shape
        own = axis.weights.reshape(1, number, *[1] * (found.ndim - 1), cells)
        found = (found[:, None, ..., None] * own).reshape(found.shape[0] * number, *found.shape[1:], cells)
    return found


def summed_kernel(kernel: Array, first: int, axes: Sequence[tuple[int, SummedAxis]]) -> Array:
    """The kernel in float64 with a joint axis of the sums behind axis `first` in the place of the summed window axes.

    `axes` are window axes of the kernel in order, each with its sums; taps that want the same sum are added.
    """
    import numpy as np

    found = kernel.astype(np.float64)
    for position, axis in axes:
        number = axis.weights.shape[0]
        parts = np.zeros((*found.shape[:position], number, *found.shape[position + 1 :]))
        for tap, wanted in enumerate(axis.of_tap):
            parts[(slice(None),) * position + (wanted,)] += found[(slice(None),) * position + (tap,)]
        found = parts
    places = [position for position, _ in axes]
    rest = [axis for axis in range(first + 1, found.ndim) if axis not in places]
    moved = found.transpose(*range(first + 1), *places, *rest)
    return moved.reshape(*moved.shape[: first + 1], -1, *(found.shape[axis] for axis in rest))
