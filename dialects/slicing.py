"""Strided reads that may leave the array: what TensorRT's slice modes and ONNX's pad modes put there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.symbolic import Dim
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class SliceMode(StrEnum):
    STRICT_BOUNDS = "strict_bounds"
    WRAP = "wrap"
    CLAMP = "clamp"
    FILL = "fill"
    REFLECT = "reflect"


class PadMode(StrEnum):
    CONSTANT = "constant"
    REFLECT = "reflect"
    EDGE = "edge"
    WRAP = "wrap"


# What a padded cell reads is what a slice reads that starts before the input.
PAD_READS = {
    PadMode.CONSTANT: SliceMode.FILL,
    PadMode.REFLECT: SliceMode.REFLECT,
    PadMode.EDGE: SliceMode.CLAMP,
    PadMode.WRAP: SliceMode.WRAP,
}


def out_of_bounds(
    lengths: Sequence[int], start: Sequence[int], size: Sequence[int], stride: Sequence[int]
) -> str | None:
    """What is wrong with a slice in mode strict_bounds; `None` if nothing. A slice of size 0 reads nothing."""
    for length, first, count, step in zip(lengths, start, size, stride, strict=True):
        last = first + (count - 1) * step
        if count and not (0 <= first < length and 0 <= last < length):
            return slice_text(lengths, start, size, stride)
    return None


def slice_text(lengths: Sequence[Dim], start: Sequence[Dim], size: Sequence[Dim], stride: Sequence[Dim]) -> str:
    """How messages show a slice that leaves its tensor."""
    listed = [f"[{', '.join(map(str, entries))}]" for entries in (lengths, start, size, stride)]
    return (
        f"out of bounds slice, input dimensions = {listed[0]}, start = {listed[1]}, size = {listed[2]}, "
        f"stride = {listed[3]}."
    )


def read_slice(
    x: Array,
    start: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    mode: SliceMode,
    fill: Array | None = None,
) -> Array:
    """`y[j] = x[start + j * stride]` along each axis; positions outside are mapped, or filled, as the mode says.

    Raises `InvalidInputError` where strict bounds are left.
    """
    import numpy as np

    if mode is SliceMode.STRICT_BOUNDS:
        problem = out_of_bounds(x.shape, start, size, stride)
        if problem is not None:
            raise InvalidInputError(problem)
    outside = np.zeros((1,) * x.ndim, np.bool_)
    for axis, (first, count, step) in enumerate(zip(start, size, stride, strict=True)):
        length = x.shape[axis]
        if (first, count, step) == (0, length, 1):
            continue
        position = first + np.arange(count, dtype=np.int64) * step
        invalid = (position < 0) | (position >= length)
        if invalid.any():
            position = _inside(position, length, mode)
            outside = outside | invalid.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        if length == 0 and count:
            x = np.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)
        else:
            x = np.take(x, position, axis)
    if mode is not SliceMode.FILL or not outside.any():
        return x
    return np.where(outside, np.zeros((), x.dtype) if fill is None else fill.astype(x.dtype), x)


def _inside(position: Array, length: int, mode: SliceMode) -> Array:
    import numpy as np

    if length == 0:
        return np.zeros_like(position)
    if mode is SliceMode.WRAP:
        return position % length
    if mode in (SliceMode.CLAMP, SliceMode.FILL):
        return np.clip(position, 0, length - 1)
    period = max(2 * (length - 1), 1)
    folded = position % period
    return np.minimum(folded, period - folded) if length > 1 else np.zeros_like(position)
