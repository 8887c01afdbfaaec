"""The elements of one array in the order of another one, where that is a walk with constant strides: found, and walked.

Weights are packed for the vectors of a processor: the same numbers, by blocks of other sizes. One such array then says
how to read the other, which is nothing but its strides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np

from mlirt.runtime.host_memory import aligned_empty

_WORDS = {4: np.uint32, 8: np.uint64}
_MAX_ANCHORS, _MAX_AXES = 8, 16
_FEW_STEPS, _MORE_STEPS = 64, 4096
Words: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


@dataclass(frozen=True)
class Order:
    """A walk through words of `word_bytes` bytes: from `offset` on, lengths and strides (in words), outermost first."""

    word_bytes: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def as_json(self) -> list[object]:
        """What `walk_of` reads."""
        return [self.word_bytes, self.offset, list(self.shape), list(self.strides)]

    def fits(self, count: int) -> bool:
        """Whether it stays within an array of so many words, and has no more of them."""
        if prod(self.shape) > count:
            return False
        reach = [(length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)]
        least = self.offset + sum(min(0, one) for one in reach)
        return least >= 0 and self.offset + sum(max(0, one) for one in reach) < count


def ordered(stored: np.ndarray, order: Order, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """A new array of a type and a shape, with the words of `stored` in an order that `fits` it."""
    result = aligned_empty(shape, dtype)
    words = result.reshape(-1).view(_WORDS[order.word_bytes]).reshape(order.shape)
    np.copyto(words, _walk(_words(stored, order.word_bytes), order))
    result.flags.writeable = False
    return result


def order_of(wanted: np.ndarray, stored: np.ndarray) -> Order | None:
    """How `stored` is read as `wanted`, both contiguous; None where that is no such walk, or none was found."""
    if wanted.dtype != stored.dtype or not wanted.size:
        return None
    word_bytes = max(4, wanted.dtype.itemsize)
    if word_bytes not in _WORDS or wanted.nbytes % word_bytes or stored.nbytes % word_bytes:
        return None
    words, given = _words(wanted, word_bytes), _words(stored, word_bytes)
    order = _found(words, _Positions(given), word_bytes)
    if order is None or not order.fits(len(given)):
        return None
    return order if np.array_equal(_walk(given, order).reshape(-1), words) else None


def signature(array: np.ndarray) -> int:
    """A number that arrays of the same words in any order have in common, and zeros do not change."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = flat[: len(flat) // 4 * 4].view(np.uint32)
    return int(whole.sum(dtype=np.uint64)) ^ int(np.bitwise_xor.reduce(whole, initial=np.uint32(0))) << 64


class _Positions:
    """Where each word is that is there once."""

    def __init__(self, words: Words) -> None:
        if words.dtype.itemsize == 4:  # numbers with their places are sorted several times faster than places
            both = words.astype(np.uint64) << np.uint64(32) | np.arange(len(words), dtype=np.uint64)
            both.sort()
            self._order, self._sorted = both.astype(np.uint32), (both >> np.uint64(32)).astype(np.uint32)
        else:
            self._order = np.argsort(words)
            self._sorted = words[self._order]

    def of(self, words: Words) -> Words:
        """The place of each word; -1 for one that is not there, or more than once."""
        left = np.searchsorted(self._sorted, words)
        last = len(self._sorted) - 1
        here, after = np.minimum(left, last), np.minimum(left + 1, last)
        is_single = (self._sorted[here] == words) & ((self._sorted[after] != words) | (after == here))
        return np.where(is_single, self._order[here].astype(np.int64), -1)


def _found(words: Words, positions: _Positions, word_bytes: int) -> Order | None:
    """The walk, innermost axis first: each is followed as far as its steps are equal."""
    shape, strides = list[int](), list[int]()
    size = 1
    while size < len(words):
        axis = _axis(words, size, positions)
        if axis is None or len(shape) == _MAX_AXES:
            return None
        shape.insert(0, axis[0])
        strides.insert(0, axis[1])
        size *= axis[0]
    if size != len(words):
        return None
    start = positions.of(words[:_FEW_STEPS])
    known = np.flatnonzero(start >= 0)
    if not len(known):
        return None
    index = np.unravel_index(int(known[0]), shape) if shape else ()
    offset = int(start[known[0]]) - sum(int(i) * stride for i, stride in zip(index, strides, strict=True))
    return Order(word_bytes, offset, tuple(shape), tuple(strides))


def _axis(words: Words, size: int, positions: _Positions) -> tuple[int, int] | None:
    """Length and stride of the axis whose steps lie `size` words apart, seen from several places at once."""
    for most in (_FEW_STEPS, _MORE_STEPS, len(words) // size):
        found = _axis_within(words, size, positions, most)
        if found is None or found[0] < most:
            return found
    return found


def _axis_within(words: Words, size: int, positions: _Positions, most: int) -> tuple[int, int] | None:
    steps = np.arange(min(len(words) // size, most))
    anchors = np.unique(np.linspace(0, size - 1, min(size, _MAX_ANCHORS)).astype(np.int64))
    places = positions.of(words[anchors[:, None] + steps * size])
    known = places >= 0
    pairs = known[:, 1:_MAX_ANCHORS] & known[:, : _MAX_ANCHORS - 1][:, : known[:, 1:_MAX_ANCHORS].shape[1]]
    moves = np.diff(places[:, :_MAX_ANCHORS])[pairs]
    if not len(moves):
        return None
    values, counts = np.unique(moves, return_counts=True)
    stride = int(values[counts.argmax()])
    first = known.argmax(axis=1)
    rows = np.arange(len(anchors))
    expected = places[rows, first][:, None] + (steps - first[:, None]) * stride
    wrong = (known & (places != expected)).any(axis=0)
    length = int(wrong.argmax()) if wrong.any() else len(steps)
    return (length, stride) if length > 1 else None


def _words(array: np.ndarray, word_bytes: int) -> Words:
    return array.reshape(-1).view(np.uint8).view(_WORDS[word_bytes])


def _walk(words: Words, order: Order) -> Words:
    strides = tuple(stride * order.word_bytes for stride in order.strides)
    return np.lib.stride_tricks.as_strided(words[order.offset :], order.shape, strides, writeable=False)


def walk_of(record: object) -> Order | None:
    """An order as JSON has it, `[word bytes, offset, shape, strides]`; None for what is none."""
    parts = cast("list[object]", record) if isinstance(record, list) else []
    if len(parts) != 4:
        return None
    start, shape, strides = _integers(parts[:2]), _integers(parts[2]), _integers(parts[3])
    if start is None or shape is None or strides is None or not len(shape) == len(strides) <= _MAX_AXES:
        return None
    word_bytes, offset = start
    if word_bytes not in _WORDS or offset < 0 or min(shape, default=1) < 1 or prod(shape) > 1 << 40:
        return None
    return Order(word_bytes, offset, shape, strides)


def _integers(values: object) -> tuple[int, ...] | None:
    given = cast("list[object]", values) if isinstance(values, list) else [None]
    found = tuple(one for one in given if isinstance(one, int) and not isinstance(one, bool) and abs(one) < 1 << 40)
    return found if len(found) == len(given) else None
