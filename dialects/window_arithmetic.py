"""Lengths and pads of sliding windows: TensorRT's six padding modes (tensorrt-features.md#1.6g), one spatial axis at a
time.

With the input length I, pads B before and A after, stride S and the extent E = 1 + dilation (size - 1), the output
length is

| mode | output length | pads that count |
|---|---|---|
| explicit_round_down | floor((I + B + A - E) / S) + 1 | B, A |
| explicit_round_up | ceil((I + B + A - E) / S) + 1 | B, A |
| same_upper, same_lower | ceil(I / S) | P = max((O - 1) S + E - I, 0), the odd cell at the end or at the start |
| caffe_round_down, caffe_round_up | as explicit, with A = B | B, B |

A padded input that is shorter than the window has no result. Pooling layers can ask for one window where less than a
stride is missing (`ShortInput`), as ONNX's runtimes have it, which divide toward zero.

For a transposed window (deconvolution) the length is (I - 1) S + E - B - A, where `same` takes P = max(E - S, 0).
Source: NvInfer.h 8.5, PaddingMode.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum, minimum


class PaddingMode(StrEnum):
    EXPLICIT_ROUND_DOWN = "explicit_round_down"
    EXPLICIT_ROUND_UP = "explicit_round_up"
    SAME_UPPER = "same_upper"
    SAME_LOWER = "same_lower"
    CAFFE_ROUND_DOWN = "caffe_round_down"
    CAFFE_ROUND_UP = "caffe_round_up"


class ShortInput(StrEnum):
    """What rounding down makes of a padded input that is shorter than the window by less than a stride."""

    REFUSED = "refused"
    """Nothing: the lengths do not fit."""
    OVERHANGING = "overhanging"
    """One window; the cells behind the pads do not count."""
    PADDED = "padded"
    """One window; the cells behind the pads are padding, too."""


_SAME = frozenset({PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER})
_ROUND_UP = frozenset({PaddingMode.EXPLICIT_ROUND_UP, PaddingMode.CAFFE_ROUND_UP})
_CAFFE = frozenset({PaddingMode.CAFFE_ROUND_DOWN, PaddingMode.CAFFE_ROUND_UP})


@dataclass(frozen=True)
class Window:
    """One axis of a sliding window; `pre` and `post` as written, before the mode has its say."""

    size: int
    stride: int = 1
    dilation: int = 1
    pre: int = 0
    post: int = 0
    mode: PaddingMode = PaddingMode.EXPLICIT_ROUND_DOWN
    short_input: ShortInput = ShortInput.REFUSED

    @property
    def extent(self) -> int:
        """Cells from the first to the last one that a window touches."""
        return 1 + self.dilation * (self.size - 1)

    def output_length(self, length: Dim) -> Dim:
        """Number of windows over an input of this length."""
        if self.mode in _SAME:
            return ceil_div(length, self.stride)
        pre, post = self._explicit_padding()
        divide = ceil_div if self.mode in _ROUND_UP else floor_div
        count = divide(length + pre + post - self.extent, self.stride) + 1
        return maximum(count, 1) if self.takes_short_input else count

    @property
    def takes_short_input(self) -> bool:
        """Whether an input of a length above 0 may be too short for the window and have a result all the same."""
        is_asked = self.short_input is not ShortInput.REFUSED and self.mode is PaddingMode.EXPLICIT_ROUND_DOWN
        return is_asked and self.stride > 1 and self.extent > 1 + self.pre + self.post

    def spare_cells(self, length: Dim) -> Dim:
        """How many cells of the padded input the first window leaves; negative where there is no window."""
        if self.mode in _SAME:
            return length - 1
        rest = length + sum(self._explicit_padding()) - self.extent
        if self.takes_short_input:
            # An axis without cells has no window.
            return minimum(rest + self.stride - 1, length - 1)
        return rest + self.stride - 1 if self.mode in _ROUND_UP else rest

    def padding(self, length: Dim) -> tuple[Dim, Dim]:
        """The pads before and after, as the mode makes them."""
        if self.mode in _SAME:
            total = (ceil_div(length, self.stride) - 1) * self.stride + self.extent - length
            return _split(maximum(total, 0), self.mode)
        pre, post = self._explicit_padding()
        if self.takes_short_input and self.short_input is ShortInput.PADDED:
            return pre, post + maximum(self.extent - pre - post - length, 0)
        return pre, post

    def _explicit_padding(self) -> tuple[int, int]:
        return self.pre, self.pre if self.mode in _CAFFE else self.post

    def overhang(self, length: Dim) -> Dim:
        """Cells past the padded input that the last window reaches: not counted by averages."""
        if self.mode not in _ROUND_UP and not self.takes_short_input:
            return 0
        pre, post = self.padding(length)
        reach = (self.output_length(length) - 1) * self.stride + self.extent
        return maximum(reach - (length + pre + post), 0)


@dataclass(frozen=True)
class TransposedWindow:
    """One axis of a deconvolution; pads cut cells off the output."""

    size: int
    stride: int = 1
    dilation: int = 1
    pre: int = 0
    post: int = 0
    mode: PaddingMode = PaddingMode.EXPLICIT_ROUND_DOWN
    output_padding: int = 0

    @property
    def extent(self) -> int:
        return 1 + self.dilation * (self.size - 1)

    def padding(self) -> tuple[int, int]:
        """The cells cut off before and after, as the mode makes them."""
        if self.mode in _SAME:
            total = max(self.extent - self.stride, 0)
            return (
                (total // 2, total - total // 2)
                if self.mode is PaddingMode.SAME_UPPER
                else (total - total // 2, total // 2)
            )
        return self.pre, self.pre if self.mode in _CAFFE else self.post

    def output_length(self, length: Dim) -> Dim:
        """Length of the output for an input of this length."""
        return (length - 1) * self.stride + self.extent - sum(self.padding()) + self.output_padding


def _split(total: Dim, mode: PaddingMode) -> tuple[Dim, Dim]:
    small = floor_div(total, 2)
    large = total - small
    return (small, large) if mode is PaddingMode.SAME_UPPER else (large, small)
