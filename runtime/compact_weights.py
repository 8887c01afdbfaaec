"""Float32 weights in fewer bytes and back to the bit: as halves, or as bytes times scales, where they are just that.

Networks in half precision and networks with quantised weights have such weights, where kernels want float32.
"""

import math
import os
import threading
from bisect import bisect_left
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakValueDictionary

import numpy as np

from mlirt.half_numbers import are_halves
from mlirt.runtime.host_memory import aligned_empty, aligned_part

_MIN_ELEMENTS = 1024  # elements that are worth it
_MIN_LINE_ELEMENTS = 8  # elements of a line, which has a scale of its own
_SAMPLE = 4096  # elements that tell most weights from what is shorter
_MAX_INT8 = 127
_STEPS = 6  # of its scale to the smallest number of a line, at most
_CHUNK = 1 << 20  # elements that are converted at a time

_RATIOS = sorted({small / large for large in range(1, _MAX_INT8 + 1) for small in range(1, large + 1)})
_ROUNDING = 2.0**-22  # relative: each of two float32 products is off by 2**-24 at most
_MIN_NORMAL = 2.0**-120  # magnitude above which products are rounded relative to it

_shared: WeakValueDictionary[Hashable, np.ndarray] = WeakValueDictionary()
"""The memory of float32 numbers that somebody in this process uses, by what they are."""
_lock = threading.Lock()


@dataclass(frozen=True)
class CompactWeights:
    """Halves, or bytes with float32 scales of as many dimensions, of which some are 1."""

    numbers: np.ndarray
    scales: np.ndarray | None = None

    def wide(self) -> np.ndarray:
        """The float32 numbers, in aligned memory."""
        result = aligned_empty(self.numbers.shape, np.dtype(np.float32))
        if self.scales is None:
            np.copyto(result, self.numbers)
        else:
            np.multiply(self.numbers, self.scales, out=result, dtype=np.float32)
        return result


@dataclass(frozen=True)
class CompactForm:
    """How an array becomes shorter: halves, or bytes with `scales`."""

    scales: np.ndarray | None = None

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(np.float16 if self.scales is None else np.int8)

    def chunks(self, array: np.ndarray) -> Iterator[np.ndarray]:
        """The shorter numbers, some rows after the other."""
        rows = max(1, _CHUNK * len(array) // array.size)
        for start in range(0, len(array), rows):
            part = array[start : start + rows]
            if self.scales is None:
                yield part.astype(np.float16)
            else:
                scales = self.scales if len(self.scales) == 1 else self.scales[start : start + rows]
                yield np.rint(part / scales).astype(np.int8)


class Forms(dict[str, CompactForm | None]):
    """How each weight of a plan is stored, by its key: to find it takes a fraction of a millisecond a weight."""


def shared_wide(name: Hashable, stored: CompactWeights) -> np.ndarray:
    """The float32 numbers of what is always the same under this name, in memory that all of the process share."""
    with _lock:
        memory = _shared.get(name)
        if memory is None:
            wide = stored.wide()
            if isinstance(wide.base, np.ndarray):
                _shared[name] = wide.base
            return wide
    return aligned_part(memory, stored.numbers.shape, np.dtype(np.float32))


def _free_after_fork() -> None:
    """The thread that held the lock is not in the child."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_after_fork)


def compact(array: np.ndarray) -> CompactWeights | None:
    """What has the same bits when it is wide again; None where nothing shorter is known to."""
    form = compact_form(array)
    return None if form is None else CompactWeights(np.concatenate(list(form.chunks(array))), form.scales)


def compact_form(array: np.ndarray) -> CompactForm | None:
    """How to make an array shorter so that it has the same bits when it is wide again; None where no way is known."""
    if array.dtype != np.float32 or array.size < _MIN_ELEMENTS:
        return None
    flat = array.reshape(-1)
    start = np.unravel_index(int(np.argmax(flat[:_SAMPLE] != 0)), array.shape)
    for axes in _axes_of_lines(array.shape):
        line = array[tuple(slice(None) if axis in axes else place for axis, place in enumerate(start))]
        if _may_fit(line.reshape(1, -1)[:, :: -(-line.size // _SAMPLE)]):
            scales = _scales_along(array, axes)
            if scales is not None:
                return CompactForm(scales)
    return CompactForm() if are_halves(array) else None


@lru_cache(maxsize=256)
def _axes_of_lines(shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Along which axes numbers may have the same scale: along all, all but outer or inner ones, a single one."""
    axes = tuple(range(len(shape)))
    choices = [axes, axes[1:], axes[:-1], axes[1:-1], *((axis,) for axis in axes)]
    long = [choice for choice in choices if math.prod(shape[axis] for axis in choice) >= _MIN_LINE_ELEMENTS]
    return tuple(dict.fromkeys(long))


def _scales_along(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray | None:
    """A scale for each line along some axes."""
    kept = tuple(axis for axis in range(array.ndim) if axis not in axes)
    order = (*kept, *axes)
    lines = array.transpose(order).reshape(int(np.prod([array.shape[axis] for axis in kept], dtype=np.int64)), -1)
    scales = _scales(lines)
    if scales is None:
        return None
    return scales.reshape([1 if axis in axes else length for axis, length in enumerate(array.shape)])


def _scales(lines: np.ndarray) -> np.ndarray | None:
    """The scale of each line, as a column; None where one has none."""
    scales, pending = np.ones((len(lines), 1), np.float32), np.arange(len(lines))
    for guess in _guesses(lines):
        fits = _fit(lines[pending], guess[pending])
        scales[pending[fits]] = guess[pending[fits]]
        pending = pending[~fits]
        if not pending.size:
            return scales
    return None


def _may_fit(line: np.ndarray) -> bool:
    """Whether a line, or a sample of it, has a scale: most guesses are wrong for its first numbers already."""
    if not _have_whole_ratios(line[0, :_FIRST].tolist()):
        return False
    if line.shape[1] > _MAX_INT8 + 1 and np.unique(np.abs(line[:, :_MANY])).size > _MAX_INT8 + 1:
        return False  # a scale times 0 to 127 has no more magnitudes
    guesses = _guesses_of_one(line)
    for part in (line[:, :_FIRST], line):
        guesses = guesses[_fit(np.broadcast_to(part, (len(guesses), part.shape[1])), guesses)]
        if not len(guesses):
            return False
    return True


def _have_whole_ratios(numbers: list[float]) -> bool:
    """Whether numbers may be a scale times -127 to 127: their ratios are those of such numbers, but for rounding."""
    magnitudes = [abs(number) for number in numbers if number]
    if not magnitudes or not all(_MIN_NORMAL < number < math.inf for number in magnitudes):
        return True
    largest = max(magnitudes)
    for number in magnitudes:
        ratio = number / largest
        place = bisect_left(_RATIOS, ratio)
        if not any(abs(ratio - near) <= _ROUNDING * near for near in _RATIOS[max(place - 1, 0) : place + 1]):
            return False
    return True


def _guesses_of_one(line: np.ndarray) -> np.ndarray:
    """The same as `_guesses` of a single line, in another order."""
    magnitudes = np.abs(line)
    least = magnitudes[magnitudes != 0].min(initial=np.float32(np.inf))
    numbers = np.full(len(_ALL_STEPS), np.float32(1) if np.isinf(least) else least, np.float32)
    numbers[1] = magnitudes.max()
    with np.errstate(all="ignore"):
        numbers[2:] = np.where(np.isinf(least), least, numbers[2:])
        quotients = (numbers / _ALL_STEPS).astype(np.float32)
        near = quotients[_IS_INEXACT]
        below, above = np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf))
    return np.concatenate([quotients, below, above])[:, None]


_FIRST = 8
_MANY = 2 * (_MAX_INT8 + 1)
_ALL_STEPS = np.array([1, _MAX_INT8, *range(2, _STEPS + 1)], np.float32)
_IS_INEXACT = np.array([int(steps) & (int(steps) - 1) != 0 for steps in _ALL_STEPS])


def _guesses(lines: np.ndarray) -> Iterator[np.ndarray]:
    """What the scales may be: the smallest number of a line is a few of them, and the largest mostly 127."""
    magnitudes = np.abs(lines)
    least = np.where(magnitudes != 0, magnitudes, np.float32(np.inf)).min(axis=1, keepdims=True)
    yield from _near(np.where(np.isinf(least), np.float32(1), least), 1)
    yield from _near(magnitudes.max(axis=1, keepdims=True), _MAX_INT8)
    for steps in range(2, _STEPS + 1):
        yield from _near(least, steps)


def _near(numbers: np.ndarray, steps: int) -> Iterator[np.ndarray]:
    """The scales of which so many, rounded, are the numbers."""
    with np.errstate(all="ignore"):
        quotients = (numbers / np.float32(steps)).astype(np.float32)
    yield quotients
    if steps & (steps - 1):
        yield np.nextafter(quotients, np.float32(0))
        yield np.nextafter(quotients, np.float32(np.inf))


def _fit(lines: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Whether the lines are bytes times their scales, to the bit."""
    with np.errstate(all="ignore"):
        numbers = np.rint(lines / scales)
        bounded = np.where(np.abs(numbers) <= _MAX_INT8, numbers, 0).astype(np.int8)
        again = np.multiply(bounded, scales, dtype=np.float32)
    return np.asarray((again.view(np.uint32) == lines.view(np.uint32)).all(axis=1))
