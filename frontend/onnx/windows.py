"""Strides, dilations and pads of convolutions and poolings, from attributes that every opset spells alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum

if TYPE_CHECKING:
    from mlirt.frontend.onnx.node import Node

_MODES = {
    "NOTSET": "explicit_round_down",
    "VALID": "explicit_round_down",
    "SAME_UPPER": "same_upper",
    "SAME_LOWER": "same_lower",
}


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


def geometry_of(node: Node, sizes: Sequence[int], lengths: Sequence[Dim], *, transposed: bool = False) -> Geometry:
    """The geometry of a window of these sizes; `auto_pad` becomes explicit pads where the lengths are numbers."""
    axes = len(sizes)
    strides, dilations = (_positive(node, name, axes) for name in ("strides", "dilations"))
    pads = node.integers("pads", [0] * (2 * axes))
    if len(pads) != 2 * axes:
        raise node.invalid(f"expected {2 * axes} pads for {axes} spatial axes, got {pads}")
    name = node.text("auto_pad", "NOTSET") or "NOTSET"
    if name not in _MODES:
        raise node.invalid(f"expected auto_pad as one of {sorted(_MODES)}, got {name!r}")
    geometry = Geometry(strides, dilations, pads[:axes], pads[axes:], _MODES[name])
    if name != "NOTSET":
        geometry = Geometry(strides, dilations, [0] * axes, [0] * axes, _MODES[name])
    return geometry if transposed else _explicit(geometry, sizes, lengths)


def _explicit(geometry: Geometry, sizes: Sequence[int], lengths: Sequence[Dim]) -> Geometry:
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


def _positive(node: Node, name: str, axes: int) -> list[int]:
    values = node.integers(name, [1] * axes)
    if len(values) != axes or min(values, default=1) < 1:
        raise node.invalid(f"expected {axes} positive {name}, got {values}")
    return values
