"""The arguments of all launches of a plan as one array of words, which NumPy fills for each set of shapes.

A word is an integer, the bits of a float64, or for a pointer its offset in the buffer that owns the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from mlirt.runtime.bound_launch import Address, BoundLaunch
from mlirt.runtime.formula_table import MAX_BYTES, FormulaTable
from mlirt.runtime.manifest import BufferArgument, FloatArgument, IntArgument, Manifest, MapArgument

_MIN_I32, _BEHIND_I32 = -(1 << 31), 1 << 31


class LaunchArguments:
    """What is the same for all shapes: where each word stands, and which formulas it follows from."""

    def __init__(self, manifest: Manifest, table: FormulaTable) -> None:
        self.starts = np.array([0, *accumulate(len(launch.args) for launch in manifest.launches)], np.intp)
        """The first word of each launch, and the end of the last one."""
        self.has_maps = False
        fixed: list[int] = []
        integers: list[tuple[int, int, bool]] = []
        pointers: list[tuple[int, int, int, int]] = []
        for launch in manifest.launches:
            kinds = manifest.kernels[launch.kernel].args
            for argument, kind in zip(launch.args, kinds, strict=True):
                word = 0
                if isinstance(argument, IntArgument):
                    if isinstance(argument.value, int) and kind != "i32":
                        word = argument.value
                    else:
                        integers.append((len(fixed), table.add(argument.value), kind == "i32"))
                elif isinstance(argument, FloatArgument):
                    word = bits_of(argument.value)
                elif isinstance(argument, BufferArgument):
                    extent = table.add(0 if argument.extent is None else argument.extent)
                    pointers.append((len(fixed), argument.buffer, table.add(argument.offset), extent))
                else:
                    self.has_maps = True
                fixed.append(word)
        self._fixed = np.array(fixed, np.int64)
        self._integers, self._integer_formulas, narrow = _columns(integers, 3)
        self._narrow = self._integer_formulas[narrow.astype(bool)]
        self.pointers, buffers, self._offsets, self._extents = _columns(pointers, 4)
        """The words that are pointers."""
        self._buffers = buffers
        self.roots = np.array(manifest.roots, np.intp)[buffers]
        """The buffer that each pointer points into."""
        self.launches = np.searchsorted(self.starts, self.pointers, "right") - 1
        """The launch that each pointer belongs to."""
        self.buffer_kinds = _buffer_kinds(manifest, table)
        kinds = joined(self.buffer_kinds[buffers], self._offsets, self._extents)
        _, self._first_of_kinds, self.kinds = np.unique(kinds, return_index=True, return_inverse=True)
        """A number for each pointer (`kinds`): those of one kind have the same formulas."""
        nothing = table.add(0)
        is_view = np.array([buffer.view_of is not None for buffer in manifest.buffers], bool)
        self._moving = np.flatnonzero(is_view[buffers] | (self._offsets != nothing))
        """The pointers that may point to other bytes than the first of an owner."""
        self._written = _columns(
            [
                (number, one.buffer)
                for number, launch in enumerate(manifest.launches)
                for place in sorted(manifest.kernels[launch.kernel].written)
                if isinstance(one := launch.args[place], BufferArgument | MapArgument)
            ],
            2,
        )

    @property
    def integers(self) -> list[tuple[int, int, bool]]:
        """The words that follow from formulas, the formula of each, and whether it has 32 bits."""
        is_narrow = np.isin(self._integer_formulas, self._narrow)
        return list(zip(self._integers.tolist(), self._integer_formulas.tolist(), is_narrow.tolist(), strict=True))

    @property
    def pointed(self) -> list[tuple[int, int, int, int]]:
        """The words that are pointers, the buffer of each, and its formulas: from which byte on, and how many."""
        columns = (self.pointers, self._buffers, self._offsets, self._extents)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def words(self, numbers: np.ndarray, sizes: np.ndarray, starts: np.ndarray) -> np.ndarray | None:
        """The words, by the values of all formulas, and the bytes of each buffer and where it starts in its owner.

        None where a number is not as it must be, for the caller to find out which one it is.
        """
        narrow = numbers[self._narrow]
        if bool(np.any(narrow < _MIN_I32)) or bool(np.any(narrow >= _BEHIND_I32)):
            return None
        found = self._fixed.copy()
        found[self._integers] = numbers[self._integer_formulas]
        return found if self._fill_pointers(found, numbers, sizes, starts) else None

    def _fill_pointers(self, words: np.ndarray, numbers: np.ndarray, sizes: np.ndarray, starts: np.ndarray) -> bool:
        """Write where each pointer points in the buffer that owns the bytes; False where one leaves its own."""
        has_empty = bool((sizes == 0).any())
        # Where nothing is empty, equal formulas fit equally.
        looked_at = slice(None) if has_empty else self._first_of_kinds
        held, extents = sizes[self._buffers[looked_at]], numbers[self._extents[looked_at]]
        offsets = numbers[self._offsets[looked_at]]
        if has_empty:
            offsets = np.where(held == 0, 0, offsets)
        fits = (offsets >= 0) & (extents >= 0) & (offsets <= MAX_BYTES) & (offsets + extents <= held)
        if has_empty:
            places = starts[self._buffers] + offsets
            idle = self.idle(sizes)[self.launches]
            fits |= idle
            places[idle] = 0
            words[self.pointers] = places
        else:
            moving = self._moving
            words[self.pointers[moving]] = starts[self._buffers[moving]] + numbers[self._offsets[moving]]
        return bool(fits.all())

    def idle(self, sizes: np.ndarray) -> np.ndarray:
        """For each launch whether it writes to buffers and all of them have no bytes."""
        launches, buffers = self._written
        count = len(self.starts) - 1
        written = np.bincount(launches, minlength=count)
        return (written > 0) & (np.bincount(launches, sizes[buffers] > 0, count) == 0)

    def words_of(self, launches: Sequence[BoundLaunch]) -> np.ndarray:
        """The words of launches that were bound one by one."""
        found = self._fixed.copy()
        for launch in launches:
            for word, argument in enumerate(launch.args, int(self.starts[launch.index])):
                if isinstance(argument, Address):
                    found[word] = argument.offset
                elif isinstance(argument, int):
                    found[word] = argument
        return found


def bits_of(number: float) -> int:
    """A float64 as the integer of the same bits."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _buffer_kinds(manifest: Manifest, table: FormulaTable) -> np.ndarray:
    """A number for each buffer: those of one kind have the same sizes, and lie at the same places in such buffers."""
    kinds: dict[tuple[int, ...], int] = {}
    found: list[int] = []
    for buffer in manifest.buffers:
        described = [table.add(buffer.size)]
        while (source := buffer.view_of) is not None:
            described.append(table.add(buffer.view_offset))
            buffer = manifest.buffers[source]
        found.append(kinds.setdefault((*described, table.add(buffer.size)), len(kinds)))
    return np.array(found, np.int64)


def joined(*columns: np.ndarray) -> np.ndarray:
    """One number for each row of columns of small numbers."""
    found = columns[0]
    for column in columns[1:]:
        found = found * (int(column.max(initial=0)) + 1) + column
    return found


def _columns(rows: Sequence[tuple[int, ...]], count: int) -> list[np.ndarray]:
    table = np.array(rows, np.int64).reshape(len(rows), count)
    return [np.ascontiguousarray(table[:, k]) for k in range(count)]
