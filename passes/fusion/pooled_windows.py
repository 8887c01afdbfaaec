"""The window of a convolution whose results are averaged: which taps of a larger one it is; arithmetic without IR."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class PooledAxis:
    """An axis of `length` cells with a window of `taps`, of whose results means of `size` are taken every `step`.

    There are `results` means.
    """

    length: int
    results: int
    taps: int
    stride: int
    dilation: int
    pre: int
    post: int
    size: int
    step: int


@dataclass(frozen=True)
class OneWindow:
    """The window that gives the means at once: `shares` is `[tap, tap of the window before]`, `work` its cost over that
    of both: multiplications for a mean.
    """

    shares: Array
    stride: int
    dilation: int
    pre: int
    post: int
    work: float


def convolution(axis: PooledAxis) -> OneWindow:
    """That of a convolution; the last cells that no mean reads stay as they are."""
    import numpy as np

    apart = gcd(axis.stride, axis.dilation)
    count = ((axis.size - 1) * axis.stride + (axis.taps - 1) * axis.dilation) // apart + 1
    shares = np.zeros((count, axis.taps))
    for cell in range(axis.size):
        for tap in range(axis.taps):
            shares[(cell * axis.stride + tap * axis.dilation) // apart, tap] += 1 / axis.size
    work = count / (axis.step * axis.taps)
    return OneWindow(shares, axis.step * axis.stride, apart, axis.pre, axis.post, work)


def convolution_of_transposed(axis: PooledAxis) -> OneWindow | None:
    """The convolution that a deconvolution becomes whose means are as far apart as its cells, or farther; else None."""
    if axis.step % axis.stride:
        return None
    stride = axis.step // axis.stride
    taps = {
        (tap, (cell + axis.pre - tap * axis.dilation) // axis.stride)
        for cell in range(axis.size)
        for tap in range(axis.taps)
        if (cell + axis.pre - tap * axis.dilation) % axis.stride == 0
    }
    shares, first = _shares(axis, taps, (axis.results - 1) * stride, axis.length)
    post = (axis.results - 1) * stride + len(shares) - axis.length + first
    work = len(shares) * axis.stride / (axis.step * axis.taps)
    return OneWindow(shares, stride, 1, -first, post, work)


def transposed(axis: PooledAxis) -> OneWindow | None:
    """The deconvolution that gives the means where its cells are several means apart; else None."""
    if axis.stride % axis.step:
        return None
    stride = axis.stride // axis.step
    taps = {
        (tap, (tap * axis.dilation - axis.pre - cell) // axis.step)
        for cell in range(axis.size)
        for tap in range(axis.taps)
        if (tap * axis.dilation - axis.pre - cell) % axis.step == 0
    }
    shares, first = _shares(axis, taps, (axis.length - 1) * stride, axis.results)
    post = (axis.length - 1) * stride + len(shares) + first - axis.results
    work = len(shares) / axis.taps
    return OneWindow(shares, stride, 1, -first, post, work)


def _shares(axis: PooledAxis, taps: Collection[tuple[int, int]], reach: int, length: int) -> tuple[Array, int]:
    """Shares of the taps by their places, and the first place: at most 0. Behind the last window, which begins `reach`
    cells further, none of `length` is left.
    """
    import numpy as np

    places = [place for _, place in taps]
    first, last = min([0, *places]), max([0, length - reach - 1, *places])
    shares = np.zeros((last - first + 1, axis.taps))
    for tap, place in taps:
        shares[place - first, tap] = 1 / axis.size
    return shares, first


def pooled_kernel(kernel: Array, windows: Sequence[OneWindow]) -> Array:
    """The kernel in float64 with the taps of the larger windows."""
    import numpy as np

    found = kernel.astype(np.float64)
    for axis, window in enumerate(windows, kernel.ndim - len(windows)):
        found = np.moveaxis(np.tensordot(window.shares, found, (1, axis)), 0, axis)
    return found
