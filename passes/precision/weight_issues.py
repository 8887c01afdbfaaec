"""Counts the weights of which a narrower format loses small numbers, and says so once for a network."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f16
from xdsl.ir import Attribute

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_SMALLEST_NORMAL = 2.0**-14
_SMALLEST = 2.0**-24


class WeightIssues:
    """`look(weights)` at what is converted to half precision; `warn()` says how many lost something (feature 4.2)."""

    def __init__(self) -> None:
        self._subnormal = 0
        self._vanished = 0

    def look(self, array: Array, element: Attribute) -> None:
        """Count weights with numbers for which half precision has fewer bits, or none."""
        import numpy as np

        if element != f16 or array.size < 2:
            return
        magnitudes = np.abs(array[array != 0])
        self._subnormal += bool((magnitudes < _SMALLEST_NORMAL).any())
        self._vanished += bool((magnitudes < _SMALLEST / 2).any())

    def warn(self) -> None:
        """Warn where any weights are affected, in TensorRT's words."""
        found = (
            (self._subnormal, "Detected subnormal FP16 values."),
            (self._vanished, "Detected values less than smallest positive FP16 subnormal value, which become 0."),
        )
        lines = [f" - {count} weights are affected by this issue: {text}" for count, text in found if count]
        if lines:
            head = "Issues were encountered when converting weights between types and that could affect accuracy."
            warnings.warn("\n".join([head, *lines]), stacklevel=2)
