"""Strides, dilations and pads of convolutions and poolings, from attributes that every opset spells alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing.windows import Geometry, explicit

if TYPE_CHECKING:
    from mlirt.frontend.onnx.node import Node

_MODES = {
    "NOTSET": "explicit_round_down",
    "VALID": "explicit_round_down",
    "SAME_UPPER": "same_upper",
    "SAME_LOWER": "same_lower",
}


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
    return geometry if transposed else explicit(geometry, sizes, lengths)


def _positive(node: Node, name: str, axes: int) -> list[int]:
    values = node.integers(name, [1] * axes)
    if len(values) != axes or min(values, default=1) < 1:
        raise node.invalid(f"expected {axes} positive {name}, got {values}")
    return values
