"""Which part of an axis `[start:end:step]` is, for symbolic lengths too."""

from __future__ import annotations

from mlirt.dialects.symbolic import Dim, Expr, ceil_div
from mlirt.frontend.importing import dim_numbers

# Exporters mean the end, or a place before the front, by the largest and smallest integers that there are.
_BEYOND_ANY_AXIS = (1 << 31) - 1


def window(length: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim, Dim]:
    """The first position and the number of positions of `[start:end:step]`, for symbolic lengths too.

    They are Python's, but a walk backwards from before the front starts at the front, as ONNX has it.
    """
    low, high = (0, length) if step > 0 else (-1, length - 1)
    start = _from_front(start, length)
    first = start if step < 0 and start == length - 1 else _inside(start, 0, high)
    last = _inside(_from_front(end, length), low, high)
    span = last - first if step > 0 else first - last
    count = ceil_div(span, abs(step))
    if dim_numbers.not_negative(count * -1):
        return 0, 0
    if step > 0 and first not in (start, dim_numbers.largest(start, 0)):
        # A part that starts behind the end is empty. Its place in memory shall be one inside of the tensor even so.
        first = _inside(first, 0, length - 1)
    return first, _dim(dim_numbers.largest(count, 0))


def _from_front(position: Dim, length: Dim) -> Dim:
    if isinstance(position, int) and position <= -_BEYOND_ANY_AXIS:
        return -1
    if isinstance(position, int):
        return position + length if position < 0 else position
    before = position * -1
    # A place before the front may stay so if it is before the front counted from the end too, as the axis is short.
    if any(dim_numbers.not_negative(rest) for rest in (position, *(k * (position + 1) + 1 - length for k in (1, 2)))):
        return position
    if dim_numbers.not_negative(before - 1):
        return position + length
    # The lengths of a run decide: 1 for a place that is counted from the end, else 0.
    from_end = _dim(dim_numbers.smallest(dim_numbers.largest(before, 0), 1))
    return position + length * from_end


def _inside(position: Dim, low: Dim, high: Dim) -> Dim:
    if isinstance(position, int) and position >= _BEYOND_ANY_AXIS:
        return high
    return _dim(dim_numbers.smallest(dim_numbers.largest(position, low), high))


def _dim(number: dim_numbers.Number) -> Dim:
    assert isinstance(number, int | Expr)
    return number
