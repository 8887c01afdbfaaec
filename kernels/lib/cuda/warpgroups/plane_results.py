"""The results of a product whose rows are output channels and whose columns are pixels of a row of a plane.

The threads of a warp have pixels of eight channels each time. They bring them together in shared memory, from where the
warp writes runs of one channel:

    thread 4 g + t     pixels 8 j + 2 t, 8 j + 2 t + 1 of channels g and g + 8
    shared memory      16 channels, each with a run of 64 pixels
    the warp           the run of a channel, 128 bytes, each time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.warpgroup import GROUP_LINES, ROWS, WARPGROUP
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.plane_box_tile import CONSUMERS
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import QUAD, Column, RowEpilogue
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.simt_words import (
    Access,
    count_where,
    element_at,
    fragment,
    load_fragment,
    shared_memory,
    store_fragment,
    sync_warp,
)
from mlirt.kernels.lib.language.words import extent, place, static_range

_WARPS = CONSUMERS * WARPGROUP // WARP
_PAIR = 2  # neighbouring sums of a thread
_RUN = 64  # results of a channel that are brought together
_CHANNELS = 16  # of a warp
_HALF = 8  # of these that a thread has one of


def staged_bytes(apart: int, width: int) -> int:
    """Of shared memory for results of `width` bytes each."""
    return _WARPS * _CHANNELS * _pitch(apart) * width


def _pitch(apart: int) -> int:
    """Results from one channel to the next one, so that the threads of a warp write to different banks."""
    return _RUN + GROUP_LINES * apart


@dataclass(frozen=True)
class PlaneLine:
    """A row of pixels of a tile: where a warp's first channel and the row's first pixel are in the result.

    `extras` are what the results of each of a thread's two channels need, where that has been read.
    """

    warp: Value
    lane: Value
    channel: Value
    column: Value
    entry: Value
    exists: bool
    """Whether there is the row of pixels."""
    extras: list[list[Value]]


class PlaneResults:
    """Writes rows of pixels of 64 output channels; `entries` are images, depth and height of the result."""

    def __init__(
        self,
        k: KernelBuilder,
        epilogue: RowEpilogue,
        tile: tuple[int, int, int],
        entries: tuple[Dim, Dim, Dim],
        sizes: tuple[int, Dim],
        apart: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        """`sizes` are output channels and pixels of a row, `tile` those of a tile, and its rows of pixels between.

        A pixel of the tile has `apart` results along each dimension. The epilogue has as many columns side by side as
        one access writes.
        """
        self.k, self.epilogue, self.entries, self.apart = k, epilogue, entries, apart[-1]
        self.rows, self.width = sizes
        self.columns = tile[2] * self.apart
        self.are_whole = sizes[0] % tile[0] == 0
        own = (apart[0], tile[1] * apart[1])
        self.are_inside = [
            isinstance(size, int) and size % each == 0 for size, each in zip(entries[1:], own, strict=True)
        ]
        self.pitch, self.together = _pitch(self.apart), epilogue.width

    def allocate(self) -> None:
        """Shared memory for the runs of all warps that have results."""
        element = self.epilogue.element if self.epilogue.is_by_rows else f32
        self.runs = shared_memory("runs", staged_bytes(self.apart, 1), element)

    @kernel
    def begin(self, thread: Value, part: Value, work: Work, at: Sequence[Value]) -> PlaneLine:
        """A row of pixels of the `part`-th 64 channels of a tile: image, depth and row are `at`, if there is one.

        What its results need is read ahead.
        """
        entry, exists = self._entry(at)
        warp, lane = thread // WARP, thread % WARP
        channel = work.row + part * ROWS + warp % (WARPGROUP // WARP) * _CHANNELS
        extras = list[list[Value]]()
        if self.epilogue.is_by_rows:
            for half in static_range(_CHANNELS // _HALF):
                own = channel + lane // QUAD + half * _HALF
                if not self.are_whole:
                    own = min(own, self.rows - 1)
                extras += [self._read(1, self.epilogue.at(entry, place(own)), Column(place(0)), None)]
        return PlaneLine(warp, lane, channel, work.column, entry, exists, extras)

    def _read(self, count: int, at: list[Value], column: Column, valid: Value | int | None) -> list[Value]:
        epilogue = self.epilogue
        return [epilogue.read(number, count, at, column, valid) for number in epilogue.extras]

    @kernel
    def write(self, totals: Sequence[Value], line: PlaneLine) -> None:
        """The results of a row of pixels: the sums are those of each remainder along the row."""
        for first in static_range(0, self.columns, _RUN):
            count = min(_RUN, self.columns - first)
            for half in static_range(_CHANNELS // _HALF):
                self._bring(totals, line, first, count, half)
            sync_warp()
            self._write_runs(line, first, count)
            sync_warp()

    @kernel
    def _bring(self, totals: Sequence[Value], line: PlaneLine, first: int, count: int, half: int) -> None:
        """Some results of one of a thread's channels, or their sums, go to shared memory."""
        numbers, offsets = self._numbers(first, count, half), self._offsets(count)
        values = fragment([element_at(total, number) for number in numbers for total in totals])
        if self.epilogue.is_by_rows:
            values = self.epilogue.finish(values, line.extras[half])
        channel = line.warp * _CHANNELS + half * _HALF + line.lane // QUAD
        index = channel * self.pitch + line.lane % QUAD * (_PAIR * self.apart)
        store_fragment(values, self.runs, index, Access(offsets, wide=True))

    def _numbers(self, first: int, count: int, half: int) -> list[int]:
        """Of a thread's sums of some results of a channel."""
        each = GROUP_LINES * self.apart
        groups = range(first // each, (first + count) // each)
        return [2 * _PAIR * group + half * _PAIR + pair for group in groups for pair in range(_PAIR)]

    def _offsets(self, count: int) -> list[int]:
        """From a thread's first result of a run to the others."""
        own = _PAIR * self.apart
        return [QUAD * own * (number // own) + number % own for number in range(count // QUAD)]

    @kernel
    def _write_runs(self, line: PlaneLine, first: int, count: int) -> None:
        """The warp writes a run of each of its channels: its threads have neighbouring pixels."""
        together, epilogue = self.together, self.epilogue
        threads = min(WARP, _RUN // together)  # that write to one channel
        side_by_side, own = WARP // threads, line.lane % threads * together
        for step in static_range(0, count, threads * together):
            at = own + step
            column = line.column + first + at
            exists = line.exists and column < extent(self.width)
            if step + threads * together > count:
                exists = exists and at < count
                at = min(at, count - together)
            for number in static_range(0, _CHANNELS, side_by_side):
                channel = number + line.lane // threads if side_by_side > 1 else number
                here = line.channel + channel
                is_there = exists if self.are_whole else exists and here < self.rows
                index = (line.warp * _CHANNELS + channel) * self.pitch + at
                values = load_fragment(self.runs, index, Access(static_range(together), wide=True))
                valid = count_where(is_there, together)
                if not self.are_whole:
                    here = min(here, self.rows - 1)
                indices = epilogue.at(line.entry, place(here))
                if not epilogue.is_by_rows:
                    values = epilogue.finish(values, self._read(together, indices, Column(column), valid))
                epilogue.store(values, indices, Column(column), valid)

    @kernel
    def _entry(self, at: Sequence[Value]) -> tuple[Value, bool]:
        """The number of a row of pixels of the result, and whether there is one: else that of some row."""
        entry, exists = at[0], True
        for here, size, is_inside in zip(at[1:], self.entries[1:], self.are_inside, strict=True):
            if not is_inside:
                exists = exists and here < extent(size)
                here = min(here, extent(size) - 1)
            entry = entry * extent(size) + here
        return entry, exists


__all__ = ["PlaneLine", "PlaneResults", "staged_bytes"]
