"""Which taps of a window read cells of the image, and not padding alone: the others add zeros, and are left out."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.language import Index, kernel
from mlirt.kernels.lib.language.words import size


@dataclass(frozen=True)
class PaddedAxis:
    """The windows along one axis of an image of `length` cells, behind `pad` cells of zeros and before as many."""

    name: str
    length: Dim
    pad: int
    taps: int
    stride: int
    dilation: int

    @kernel
    def needed(self, first: Index, last: Index) -> tuple[Index, Index]:
        """From which to which tap some of the windows `first`, .., `last` reads the image.

        Tap r of window y reads cell `y * stride + r * dilation - pad`.
        """
        pad, taps = size(f"{self.name}_pad", self.pad), size(f"window_{self.name}", self.taps)
        step = size(f"{self.name}_step", self.stride)
        before = max(pad - last * step, 0)
        until = max(size(f"{self.name}_end", self.length + self.pad) - first * step, 0)
        low = min(self._taps_over(before), taps)
        high = min(self._taps_over(until), taps)
        return low, high

    @kernel
    def _taps_over(self, cells: Index) -> Index:
        """How many taps, from the first one on, start within so many cells."""
        if self.dilation == 1:
            return cells
        step = size(f"{self.name}_dilation", self.dilation)
        return (cells + (step - 1)) // step
