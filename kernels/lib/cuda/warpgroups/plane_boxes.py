"""Where a tile of pixels finds the pixels of its windows in shared memory, which threads fill from planes of channels.

A line has some channels of a pixel, as matrix units read them. A tile is `height` rows of `width` pixels of the result;
all that its windows read of a plane is a box of rows. Threads read several neighbouring pixels of a channel at once, so
that a box begins up to some pixels before the first window. Where windows move by several pixels, the pixels of each
remainder are neighbours:

    planes        box of a window that moves by one      by two
    a0 b0 c0 ..   a0 a1 a2 ..  (line 0)                  a0 a1 a2 ..  (line 0)
    a1 b1 c1 ..   b0 b1 b2 ..  (line 1)                  c0 c1 c2 ..  (line 1)
    a2 b2 c2 ..   c0 c1 c2 ..  (line 2)                  b0 b1 b2 ..  (line 2)
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim, ceil_div

_WHOLE = 16  # lines, after which the order of the pieces of a line begins anew


@dataclass(frozen=True)
class PlaneAxis:
    """How windows walk along a dimension of `length` pixels: that of place `i` begins at pixel `stride * i - pre`.

    A convolution has a result at each place. A deconvolution has `apart` ones, one for each remainder of the result's
    position, whose kernels have other elements; the windows of some remainders begin a pixel further.
    """

    length: Dim
    places: Dim
    taps: int
    stride: int = 1
    dilation: int = 1
    pre: int = 0
    apart: int = 1
    cut: int = 0
    """Of the padding in front of a deconvolution, what the kernels of whole steps leave."""

    @staticmethod
    def of_deconvolution(length: Dim, results: Dim, window: int, stride: int, pre: int) -> PlaneAxis:
        """Result `y = s a + r` reads tap `t = (r + pre) % s + s j` of pixel `a + (r + pre) // s - j`."""
        taps = -(-window // stride)
        before, cut = divmod(pre, stride)
        return PlaneAxis(length, ceil_div(results, stride), taps, pre=taps - 1 - before, apart=stride, cut=cut)

    def further(self, remainder: int) -> int:
        """Pixels that the window of a remainder begins further."""
        return (remainder + self.cut) // self.apart

    def source(self, remainder: int, tap: int) -> int:
        """The tap of a deconvolution's kernel that is a tap for a remainder; one beyond its end stands for zero."""
        return (remainder + self.cut) % self.apart + self.apart * (self.taps - 1 - tap)

    @property
    def reach(self) -> int:
        """Pixels between the first and the last tap."""
        return (self.taps - 1) * self.dilation


@dataclass(frozen=True)
class PlaneBox:
    """The box of a tile; `together` neighbouring pixels are read at once."""

    down: PlaneAxis
    across: PlaneAxis
    height: int
    width: int
    together: int

    @property
    def lead(self) -> int:
        """Pixels before the first window."""
        return -self.across.pre % self.together

    @property
    def rows(self) -> int:
        """Rows of pixels."""
        return (self.height - 1) * self.down.stride + self.down.reach + 1

    @property
    def runs(self) -> int:
        """Accesses of a row of a plane."""
        across = self.across
        further = across.further(across.apart - 1)
        pixels = self.lead + (self.width - 1) * across.stride + across.reach + further + 1
        return -(-pixels // self.together)

    @property
    def part(self) -> int:
        """Lines of the pixels of a row with one remainder."""
        return -(-self.runs * self.together // self.across.stride)

    @property
    def pitch(self) -> int:
        """Lines of a row."""
        return self.across.stride * self.part

    @property
    def lines(self) -> int:
        """Of a box in shared memory."""
        return -(-self.rows * self.pitch // _WHOLE) * _WHOLE

    @property
    def taps(self) -> int:
        """Positions of a window."""
        return self.down.taps * self.across.taps


__all__ = ["PlaneAxis", "PlaneBox"]
