"""A deconvolution by the remainders of its output positions: each is a convolution with some taps of the kernel."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.symbolic import Dim, floor_div
from mlirt.dialects.tensor_types import dims

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class PhaseAxis:
    """One spatial dimension: `positions` steps of the convolution, the first of which is step `first` of the
    deconvolution, give `positions * stride` outputs, `cut` of which go off the front.
    """

    length: Dim
    output: Dim
    stride: int
    window: int
    pre: int

    @property
    def taps(self) -> int:
        return -(-self.window // self.stride)

    @property
    def _before(self) -> int:
        """Outputs of the first step that lie in front of the result."""
        return self.pre - self.first * self.stride

    @property
    def is_shifted(self) -> bool:
        """Whether the remainders in front of the result are those of the next step: the others leave a tap for it."""
        room = self.taps - 1 - self.first
        return 0 < self._before < self.stride and room > 0 and self._taps_of(self._before) < self.taps

    def _taps_of(self, remainder: int) -> int:
        return -(-(self.window - remainder) // self.stride)

    @property
    def first(self) -> int:
        return min(self.pre // self.stride, self.taps - 1)

    @property
    def cut(self) -> int:
        return 0 if self.is_shifted else self._before

    @property
    def positions(self) -> Dim:
        return floor_div(self.output - 1 + self.cut, self.stride) + 1

    @property
    def pre_padding(self) -> int:
        return self.taps - 1 - self.first - self.is_shifted

    @property
    def post_padding(self) -> Dim:
        return self.positions - self.length + self.taps - 1 - self.pre_padding

    @property
    def is_whole(self) -> bool:
        """Whether the steps give the result and nothing around it."""
        return self.cut == 0 and self.positions * self.stride == self.output

    def source(self, remainder: int, tap: int) -> int:
        """Which tap of the kernel is a tap of the convolution for a remainder; one outside of it stands for zero."""
        if self.is_shifted:
            late, remainder = divmod(remainder + self._before, self.stride)
            tap += 1 - late
        return remainder + self.stride * (self.taps - 1 - tap)


@dataclass(frozen=True)
class RemainderAxis:
    """One spatial dimension of the outputs with a `remainder`: a convolution of its own, with the taps that they have.

    Output `stride * q + remainder` gets input `q + ahead - j` times tap `first + stride * j`, for j = 0 .. taps - 1; of
    these taps some may lie behind the window, and stand for zeros.
    """

    length: Dim
    output: Dim
    stride: int
    window: int
    pre: int
    remainder: int

    @property
    def first(self) -> int:
        return (self.remainder + self.pre) % self.stride

    @property
    def ahead(self) -> int:
        return (self.remainder + self.pre) // self.stride

    @property
    def taps(self) -> int:
        """At least as many as the convolution needs to have no negative padding in front."""
        return max(1, -(-(self.window - self.first) // self.stride), self.ahead + 1)

    @property
    def positions(self) -> Dim:
        return floor_div(self.output - 1 - self.remainder, self.stride) + 1

    @property
    def pre_padding(self) -> int:
        return self.taps - 1 - self.ahead

    @property
    def post_padding(self) -> Dim:
        return self.positions - self.length + self.ahead

    def source(self, tap: int) -> int:
        """Which tap of the kernel is a tap of the convolution; one outside of it stands for zero."""
        return self.first + self.stride * (self.taps - 1 - tap)


def remainder_axes(op: ConvolutionOp, windows: Sequence[int]) -> list[list[RemainderAxis]] | None:
    """The axes of the outputs of a deconvolution for each combination of remainders, in row-major order; None where one
    of the convolutions is none: a run tells its padding, or that would be negative.
    """
    lengths, outputs = dims(op.input.type)[2:], dims(op.output.type)[2:]
    by_axis = [
        [RemainderAxis(length, output, stride, window, pre, remainder) for remainder in range(stride)]
        for length, output, window, (stride, _, pre, _) in zip(lengths, outputs, windows, op.spatial(), strict=True)
    ]
    fits = all(isinstance(one.post_padding, int) and one.post_padding >= 0 for axis in by_axis for one in axis)
    return [list(axes) for axes in itertools.product(*by_axis)] if fits else None


def kernel_of_remainder(kernel: Array, axes: Sequence[RemainderAxis], groups: int) -> Array:
    """`[k, c / groups, taps..]` from `[c, k / groups, window..]`, for one combination of remainders."""
    import numpy as np

    per_group = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    taps = [axis.taps for axis in axes]
    result = np.zeros((groups, kernel.shape[1], per_group.shape[1], *taps), kernel.dtype)
    for position in np.ndindex(*taps):
        source = [axis.source(tap) for axis, tap in zip(axes, position, strict=True)]
        if all(s < axis.window for s, axis in zip(source, axes, strict=True)):
            result[(..., *position)] = per_group[(..., *source)].transpose(0, 2, 1)
    return result.reshape(-1, per_group.shape[1], *taps)


def phase_axes(op: ConvolutionOp, windows: Sequence[int]) -> list[PhaseAxis] | None:
    """The axes of a deconvolution whose kernel, without dilation, has these windows; None where a run tells the padding
    of the convolutions, or it would be negative.
    """
    lengths, outputs = dims(op.input.type)[2:], dims(op.output.type)[2:]
    axes = [
        PhaseAxis(length, output, stride, window, pre)
        for length, output, window, (stride, _, pre, _) in zip(lengths, outputs, windows, op.spatial(), strict=True)
    ]
    fits = all(isinstance(axis.post_padding, int) and axis.post_padding >= 0 for axis in axes)
    return axes if fits else None


def undilated_windows(op: ConvolutionOp, windows: Sequence[int]) -> list[int]:
    """The windows of a kernel that has zeros in place of its dilation."""
    return [(size - 1) * dilation + 1 for size, (_, dilation, _, _) in zip(windows, op.spatial(), strict=True)]


def undilated(kernel: Array, dilations: Sequence[int]) -> Array:
    """The kernel of dilation 1 that has zeros between the taps."""
    import numpy as np

    windows = [(size - 1) * dilation + 1 for size, dilation in zip(kernel.shape[2:], dilations, strict=True)]
    result = np.zeros((*kernel.shape[:2], *windows), kernel.dtype)
    result[(..., *(slice(None, None, dilation) for dilation in dilations))] = kernel
    return result


def remainder_kernels(kernel: Array, axes: Sequence[PhaseAxis], groups: int) -> Array:
    """`[groups * remainders * k / groups, c / groups, taps..]` from `[c, k / groups, window..]`."""
    import numpy as np

    per_group = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    taps = [axis.taps for axis in axes]
    remainders = [axis.stride for axis in axes]
    result = np.zeros((groups, *remainders, kernel.shape[1], per_group.shape[1], *taps), kernel.dtype)
    for remainder in np.ndindex(*remainders):
        for position in np.ndindex(*taps):
            source = [a.source(r, p) for r, p, a in zip(remainder, position, axes, strict=True)]
            if all(0 <= s < a.window for s, a in zip(source, axes, strict=True)):
                picked = per_group[(slice(None), slice(None), slice(None), *source)]
                result[(slice(None), *remainder, slice(None), slice(None), *position)] = picked.transpose(0, 2, 1)
    return result.reshape(-1, per_group.shape[1], *taps)
