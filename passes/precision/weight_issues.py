"""Counts the weights of which a narrower format loses small numbers, and says so in one line for a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f16
from xdsl.ir import Attribute

from mlirt.counted_warnings import warn

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_MIN_NORMAL = 2.0**-14
_MIN_SUBNORMAL = 2.0**-24
_ROUNDING = 2.0**-12  # of the norm, about what rounding to 11 bits takes from any weights


class WeightIssues:
    """`look(weights)` at what is converted to half precision; `warn()` says how many lost something
    (tensorrt-features.md#4.2).
    """

    def __init__(self) -> None:
        self._subnormal = 0
        self._vanished = 0
        self._most, self._layer = -1.0, ""

    def look(self, array: Array, element: Attribute, layer: str) -> None:
        """Count weights with numbers for which half precision has fewer bits, or none."""
        import numpy as np

        if element != f16 or array.size < 2:
            return
        small = array[(array != 0) & (np.abs(array) < _MIN_NORMAL)].astype(np.float64)
        if not small.size:
            return
        self._subnormal += 1
        self._vanished += bool((np.abs(small) < _MIN_SUBNORMAL / 2).any())
        lost = np.linalg.norm(small - np.rint(small / _MIN_SUBNORMAL) * _MIN_SUBNORMAL)
        share = float(lost / np.linalg.norm(array[np.isfinite(array)].astype(np.float64)))
        if share > self._most:
            self._most, self._layer = share, layer

    def warn(self) -> None:
        """Warn where any weights are affected: in TensorRT's words, and by how much at most."""
        found = (
            (self._subnormal, "Detected subnormal FP16 values."),
            (self._vanished, "Detected values less than smallest positive FP16 subnormal value, which become 0."),
        )
        counts = [f"- {count} weights are affected by this issue: {text}" for count, text in found if count]
        if counts:
            head = "Issues were encountered when converting weights between types and that could affect accuracy."
            most = f"Most are those of {self._layer}, which lose {self._most:.1g} of their norm by it"
            usual = f"(rounding alone takes about {_ROUNDING:.1g})."
            warn(" ".join([head, *counts, most, usual]), stacklevel=2)
