"""The dispatch table of a CPU engine: the kernels of a run in order, and the parameters that its rows point to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirt.runtime.border_rows import BorderRows
from mlirt.runtime.bound_launch import Address
from mlirt.runtime.control_rows import HostRow, JumpRow, KernelRow, Row, SizeRow
from mlirt.runtime.host_memory import address_of, aligned_empty
from mlirt.runtime.launch_words import LaunchArguments
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.shape_binding import ShapeBinding

ROW_WORDS = 3
STOP_WORDS = 2
"""The parameters of a row that may stop a run: what it looks at, and a number."""
_PARAMETER_LINE = 8
_NO_BARRIER, _SERIAL, _JUMP, _SIZE, _REQUIRE = 1, 2, 4, 8, 16
_TINY_BYTES = 4096
"""Launches on so little memory are one worker's, who is done before others could have taken their parts."""
_SMALL_BYTES = 8192
"""Of launches on so little memory several workers save no more than it takes to get them: they need not be woken."""
_BRIEF_ROWS = 16


@dataclass(frozen=True)
class Workers:
    """Who a run of a table needs."""

    needs_one: bool
    """Whether more than one worker would have nothing to do: no launch has parts, and none runs beside another."""
    is_brief: bool
    """Whether it takes a few microseconds at most."""
    touched: int
    """The bytes that its launches touch in all."""


@dataclass(frozen=True)
class TableLayout:
    """Where rows and their parameters stand: the same for all shapes where the program is straight."""

    arguments: LaunchArguments
    rows: Sequence[Row]
    starts: np.ndarray
    """The first parameter of each row."""
    spots: np.ndarray
    """The parameter that each word of the launches is; an unused one for launches that have no row."""
    pointers: np.ndarray
    """The parameters that are addresses, those of control rows behind those of launches."""
    roots: np.ndarray
    """The buffers that they point into."""
    launches: np.ndarray
    """The launches that have rows: not those in place of which a run ends."""
    launch_rows: np.ndarray
    """The row of each of them."""
    kernels: np.ndarray
    """The kernel of each of them."""
    flags: np.ndarray
    """The flags of each launch that are the same for all shapes."""
    end: int
    """How many parameters there are, before one that is 0 and an unused one, and those of borders."""
    borders: BorderRows
    is_shared: bool
    """Whether the programs of all shapes have it."""

    @staticmethod
    def of(manifest: Manifest, binding: ShapeBinding, rows: Sequence[Row], *, is_shared: bool) -> TableLayout:
        """The parameters of each row begin on a line of the cache."""
        arguments = binding.arguments
        counts = np.diff(arguments.starts)
        used = np.array([_parameter_count(row, counts) for row in rows], np.intp)
        lines = -(-np.maximum(used, 1) // _PARAMETER_LINE) * _PARAMETER_LINE
        starts = np.cumsum(lines) - lines
        made = [(row.launch, number) for number, row in enumerate(rows) if isinstance(row, KernelRow | HostRow)]
        launches = np.array([launch for launch, _ in made], np.intp)
        launch_rows = np.array([number for _, number in made], np.intp)
        is_hosted = np.array([isinstance(rows[number], HostRow) for _, number in made], bool)
        first, has_row = np.zeros(len(counts), np.intp), np.zeros(len(counts), bool)
        first[launches], has_row[launches] = starts[launch_rows] + STOP_WORDS * is_hosted, True
        end = int(lines.sum())
        spots = np.repeat(first - arguments.starts[:-1], counts) + np.arange(int(counts.sum()))
        spots[np.repeat(~has_row, counts)] = end + 1
        pointed = has_row[arguments.launches]
        looked_at = [(number, _place_of(row)) for number, row in enumerate(rows)]
        places = [(int(starts[number]), place.root) for number, place in looked_at if place is not None]
        borders = BorderRows.of(binding.borders, {launch: number for launch, number in made}, end + 2)
        return TableLayout(
            arguments,
            rows,
            starts,
            spots,
            np.concatenate([spots[arguments.pointers[pointed]], _numbers(places, 0), borders.spots]),
            np.concatenate([arguments.roots[pointed], _numbers(places, 1), borders.roots]),
            launches,
            launch_rows,
            np.array([manifest.launches[launch].kernel for launch, _ in made], np.intp),
            np.array([_NO_BARRIER * one.no_barrier + _SERIAL * one.serial for one in manifest.launches], np.int64),
            end,
            borders,
            is_shared,
        )

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        return (self.starts.nbytes + self.spots.nbytes) * 2 + self.pointers.nbytes * 2 + 100 * len(self.rows)

    def filled(
        self, binding: ShapeBinding, kernels: np.ndarray, bases: np.ndarray, bordered: int, rewritten: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Workers]:
        """The table, the parameters and who is needed.

        `kernels` and `bases` are the addresses of kernels and buffers by number; `bordered` is that of the kernel which
        writes borders before another, `rewritten` says which ones.
        """
        assert binding.words is not None
        parameters = aligned_empty((self.end + 2 + self.borders.count,), np.dtype(np.int64))
        parameters[...] = 0
        parameters[self.spots] = binding.words
        table = aligned_empty((max(len(self.rows), 1), ROW_WORDS), np.dtype(np.int64))
        table[...] = 0
        table[: len(self.rows), 1] = address_of(parameters) + 8 * self.starts
        table[self.launch_rows, 0] = kernels[self.kernels]
        touched = self._touched(binding)
        flags = (self.flags | np.where(touched <= _TINY_BYTES, _SERIAL, 0))[self.launches]
        table[self.launch_rows, 2] = flags
        if len(self.rows) > len(self.launch_rows):
            self._fill_control_rows(table, parameters)
        self.borders.fill(table, parameters, bordered, binding.border_numbers, rewritten)
        parameters[self.pointers] += bases[self.roots]
        return table, parameters, self._workers(touched[self.launches], flags)

    def _touched(self, binding: ShapeBinding) -> np.ndarray:
        """The bytes of the buffers of each launch."""
        return np.bincount(self.arguments.launches, binding.size_array[self.arguments.roots], len(self.flags))

    def _workers(self, touched: np.ndarray, flags: np.ndarray) -> Workers:
        total = int(touched.sum())
        if (touched <= _SMALL_BYTES).all():
            is_brief = len(self.rows) <= _BRIEF_ROWS and not any(isinstance(row, JumpRow) for row in self.rows)
            return Workers(needs_one=True, is_brief=is_brief, touched=total)
        needs_one = bool(((flags & (_SERIAL | _NO_BARRIER)) == _SERIAL).all())
        return Workers(needs_one=needs_one, is_brief=False, touched=total)

    def _fill_control_rows(self, table: np.ndarray, parameters: np.ndarray) -> None:
        zero = address_of(parameters) + self.end * 8
        for number, row in enumerate(self.rows):
            if isinstance(row, KernelRow):
                continue
            start = int(self.starts[number])
            place = _place_of(row)
            flag, second = _REQUIRE, 0
            if isinstance(row, JumpRow):
                flag, second = _JUMP, row.target
            elif isinstance(row, SizeRow):
                flag, second = _SIZE, row.expected if place is not None else -1
            table[number, 0], table[number, 2] = 0, flag
            parameters[start : start + STOP_WORDS] = zero if place is None else place.offset, second


def _numbers(pairs: Sequence[tuple[int, int]], which: int) -> np.ndarray:
    return np.array([pair[which] for pair in pairs], np.intp)


def _place_of(row: Row) -> Address | None:
    return None if isinstance(row, KernelRow | HostRow) else row.place


def _parameter_count(row: Row, counts: np.ndarray) -> int:
    if isinstance(row, HostRow):
        return STOP_WORDS + int(counts[row.launch])
    return int(counts[row.launch]) if isinstance(row, KernelRow) else STOP_WORDS


class Patch:
    """The parameter words that depend on where one array of the caller lies."""

    def __init__(self, parameters: np.ndarray, places: np.ndarray) -> None:
        self._parameters = parameters
        self._places = places
        self._address = 0

    @property
    def nbytes(self) -> int:
        return self._places.nbytes

    def point_at(self, address: int) -> None:
        """Let the words point to an array; most callers give the same memory again and again."""
        if address != self._address:
            self._parameters[self._places] += address - self._address
            self._address = address
