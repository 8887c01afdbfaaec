"""Where the taps of a sliding window lie along an axis, and which of them are inside the input."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride


@dataclass(frozen=True)
class Axis:
    """One axis of a window: `position * stride + tap * dilation - pre`, over an input of `length`."""

    size: Dim
    stride: int
    dilation: int
    pre: Dim
    length: Dim
    output: Dim

    def stays_inside(self, block: int = 1) -> bool:
        """Whether no window reaches outside, as far as can be told without knowing the shapes.

        Windows come in blocks, the last of which may have windows of no result.
        """
        if not isinstance(self.size, int) or not isinstance(self.pre, int) or self.pre > 0:
            return False
        room = self.length - self.dilation * (self.size - 1) + self.pre - 1
        reach = (ceil_div(self.output, block) * block - 1) * self.stride
        if isinstance(room, int) and isinstance(reach, int):
            return reach <= room
        return reach == room or reach == (room // self.stride) * self.stride


class AxisCode:
    """The arithmetic of an axis in a kernel."""

    def __init__(self, k: KernelBuilder, axis: Axis, block: int = 1) -> None:
        self._k = k
        self._is_inside = axis.stays_inside(block)
        self._stride: Stride = k.stride(axis.stride)
        self._dilation: Stride = k.stride(axis.dilation)
        self._pre = k.size(axis.pre)
        self._length = k.size(axis.length)
        self.taps = k.size(axis.size)

    def start(self, position: SSAValue) -> SSAValue:
        """Where a window starts in the input; may lie before it."""
        return self._k.sub(self._k.mul(position, self._stride), self._pre)

    def place(self, start: SSAValue, tap: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """Where a tap lies, and whether that is inside the input (None: always)."""
        place = self._k.add(start, self._k.mul(tap, self._dilation))
        return place, None if self._is_inside else self._k.compare("ult", place, self._length)

    def count(self, start: SSAValue, post: SSAValue | None) -> SSAValue:
        """How many taps lie in the input, or with `post` in the padded input."""
        k = self._k
        if self._is_inside and post is None:
            return self.taps
        low, high = (self._length, k.constant(0)) if post is None else (k.add(self._length, post), self._pre)
        # place >= -high and place < low, for place = start + tap * dilation
        first = k.ceil_div(k.sub(k.sub(k.constant(0), high), start), self._dilation)
        last = k.ceil_div(k.sub(low, start), self._dilation)
        return k.max(k.sub(self._within(last), self._within(first)), 0)

    def _within(self, tap: SSAValue) -> SSAValue:
        return self._k.min(self._k.max(tap, 0), self.taps)


class TransposedAxisCode:
    """The arithmetic of an axis of a deconvolution: which input cell reaches an output position through a tap."""

    def __init__(self, k: KernelBuilder, axis: Axis) -> None:
        self._k = k
        self._stride: Stride = k.stride(axis.stride)
        self._dilation: Stride = k.stride(axis.dilation)
        self._pre = k.size(axis.pre)
        self._length = k.size(axis.length)
        self.taps = k.size(axis.size)

    def start(self, position: SSAValue) -> SSAValue:
        """The position in the output before it was cropped."""
        return self._k.add(position, self._pre)

    def place(self, start: SSAValue, tap: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """Which input cell a tap connects with that position, and whether there is one."""
        k = self._k
        distance = k.sub(start, k.mul(tap, self._dilation))
        cell = k.floor_div(distance, self._stride)
        inside = k.compare("ult", cell, self._length)
        if known(self._stride) == 1:
            return cell, inside
        return cell, k.both(inside, k.compare("eq", k.mul(cell, self._stride), distance))
