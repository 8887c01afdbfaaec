"""Where the taps of a sliding window lie along an axis, and which of them are inside the input."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects import symbolic
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.words import ceil_div, floor_div, is_inside


@dataclass(frozen=True)
class Axis:
    """One axis of a window: `position * stride + tap * dilation - pre`, over an input of `length`."""

    size: Dim
    stride: int
    dilation: int
    pre: Dim
    length: Dim
    output: Dim

    @property
    def known_size(self) -> int:
        """The size, where it is known when the kernel is built."""
        assert isinstance(self.size, int)
        return self.size

    def stays_inside(self, block: int = 1) -> bool:
        """Whether no window reaches outside, as far as can be told without knowing the shapes.

        Windows come in blocks, the last of which may have windows of no result.
        """
        if not isinstance(self.size, int) or not isinstance(self.pre, int) or self.pre > 0:
            return False
        room = self.length - self.dilation * (self.size - 1) + self.pre - 1
        reach = (symbolic.ceil_div(self.output, block) * block - 1) * self.stride
        if isinstance(room, int) and isinstance(reach, int):
            return reach <= room
        return reach == room or reach == (room // self.stride) * self.stride


class AxisCode:
    """The arithmetic of an axis in a kernel."""

    def __init__(self, k: KernelBuilder, axis: Axis, block: int = 1) -> None:
        self._is_inside = axis.stays_inside(block)
        self._stride, self._dilation = k.stride(axis.stride), k.stride(axis.dilation)
        self._pre, self._length, self.taps = (value_of(k.size(one)) for one in (axis.pre, axis.length, axis.size))

    @kernel
    def start(self, position: Value) -> Value:
        """Where a window starts in the input; may lie before it."""
        return position * value_of(self._stride) - self._pre

    @kernel
    def place(self, start: Value, tap: Index) -> tuple[Value, bool]:
        """Where a tap lies, and whether that is inside the input."""
        place = start + tap * value_of(self._dilation)
        return place, self._is_inside or is_inside(place, self._length)

    @kernel
    def count(self, start: Value, post: Value | None) -> Value:
        """How many taps lie in the input, or with `post` in the padded input."""
        if self._is_inside and post is None:
            return self.taps
        # place >= -high and place < low, for place = start + tap * dilation
        low, high = (self._length, 0) if post is None else (self._length + post, self._pre)
        first, last = (ceil_div(end - start, self._dilation) for end in (-high, low))
        return max(min(max(last, 0), self.taps) - min(max(first, 0), self.taps), 0)


class TransposedAxisCode:
    """The arithmetic of an axis of a deconvolution: which input cell reaches an output position through a tap."""

    def __init__(self, k: KernelBuilder, axis: Axis) -> None:
        self._stride, self._dilation = value_of(k.stride(axis.stride)), value_of(k.stride(axis.dilation))
        self._pre, self._length, self.taps = (value_of(k.size(one)) for one in (axis.pre, axis.length, axis.size))

    @kernel
    def start(self, position: Value) -> Value:
        """The position in the output before it was cropped."""
        return position + self._pre

    @kernel
    def place(self, start: Value, tap: Value) -> tuple[Value, bool]:
        """Which input cell a tap connects with that position, and whether there is one."""
        distance = start - tap * self._dilation
        cell = floor_div(distance, self._stride)
        inside = is_inside(cell, self._length)
        return cell, inside if known(self._stride) == 1 else inside and cell * self._stride == distance
