"""Strides, dilations and pads of the windows of convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum


@dataclass(frozen=True)
class Geometry:
    """One entry per spatial axis; `mode` is a padding mode of TensorRT."""

    strides: list[int]
    dilations: list[int]
    pre: list[int]
    post: list[int]
    mode: str = "explicit_round_down"

    def widened(self) -> Geometry:
        """The same with an axis of length 1 before."""
        return Geometry([1, *self.strides], [1, *self.dilations], [0, *self.pre], [0, *self.post], self.mode)


def explicit(geometry: Geometry, sizes: Sequence[int], lengths: Sequence[Dim]) -> Geometry:
    if not geometry.mode.startswith("same"):
        return geometry
    pre, post = pads_of(geometry, sizes, lengths)
    numbers = [[pad for pad in pads if isinstance(pad, int)] for pads in (pre, post)]
    if any(len(pads) != len(sizes) for pads in numbers):
        return geometry
    # A negative pad would crop what no window reaches.
    return Geometry(geometry.strides, geometry.dilations, numbers[0], [max(pad, 0) for pad in numbers[1]])


def pads_of(geometry: Geometry, sizes: Sequence[int], lengths: Sequence[Dim]) -> tuple[list[Dim], list[Dim]]:
    """The pads before and after each axis, also those that lengths of the run decide.

    Behind `same` pads the axis ends with its last window, so that some of them are crops.
    """
    if not geometry.mode.startswith("same"):
        return list(geometry.pre), list(geometry.post)
    pre: list[Dim] = []
    post: list[Dim] = []
    for size, stride, dilation, length in zip(sizes, geometry.strides, geometry.dilations, lengths, strict=True):
        extent = 1 + dilation * (size - 1)
        total = (ceil_div(length, stride) - 1) * stride + extent - length
        if extent == 1:
            total = 0  # windows of one cell stay inside
        # Windows without gaps between them reach the end of the axis; others may end before it.
        padded = total if extent >= stride else maximum(total, 0)
        small = floor_div(padded, 2)
        pre.append(small if geometry.mode == "same_upper" else padded - small)
        post.append(total - pre[-1])
    return pre, post
