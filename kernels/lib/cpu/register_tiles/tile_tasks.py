"""How the rows of an image are cut into tasks for workers: a model of work, balance and memory traffic, no IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlirt.dialects.cpu_device import RegisterTileCosts
from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum, minimum

_TASKS_PER_WORKER = 4
# A kernel's tasks are dealt out in so many parts for each worker.
_PARTS = 2
_MAX_PIECES = 64


@dataclass(frozen=True)
class Work:
    """What is to be done for each of `batch` images: `rows` rows of `row_bytes` bytes of input each, by `panels` panels
    of `weight_bytes` in all, `cycles` cycles for one row and panel. A task has a multiple of `multiple` rows.
    """

    rows: Dim
    panels: int
    batch: Dim
    row_bytes: Dim
    weight_bytes: int
    cycles: Dim
    multiple: int = 1


@dataclass(frozen=True)
class Tasks:
    """A task is `rows` rows of one panel of channels. `panel_first`: all rows of a panel come before the next panel."""

    rows: Dim
    panel_first: bool


def choose_tasks(work: Work, threads: int, costs: RegisterTileCosts) -> Tasks:
    """The cut with which the busiest worker is done first."""
    units, cycles, row_bytes = ceil_div(work.rows, work.multiple), work.cycles, work.row_bytes
    if (
        isinstance(units, int)
        and isinstance(work.batch, int)
        and isinstance(cycles, int)
        and isinstance(row_bytes, int)
    ):
        known = _Known(
            units, work.panels, work.batch, row_bytes * work.multiple, work.weight_bytes, cycles * work.multiple, costs
        )
        choices = [(known.time(size, order, threads), order, size) for order in (False, True) for size in _sizes(units)]
        _, order, size = min(choices)
        return Tasks(size * work.multiple, order)
    panel_first = work.weight_bytes > costs.near_bytes
    near = work.rows if panel_first else maximum(1, floor_div(costs.near_bytes // 4, work.row_bytes))
    cut = minimum(near, maximum(1, floor_div(work.rows * work.panels, threads * _TASKS_PER_WORKER)))
    return Tasks(ceil_div(cut, work.multiple) * work.multiple, panel_first)


def _sizes(units: int) -> Iterator[int]:
    """Sizes of pieces, one for each number of pieces."""
    yield from sorted({-(-units // pieces) for pieces in range(1, min(units, _MAX_PIECES) + 1)})


@dataclass(frozen=True)
class _Known:
    """Work in units of rows, all numbers known."""

    units: int
    panels: int
    batch: int
    unit_bytes: int
    weight_bytes: int
    cycles: int
    costs: RegisterTileCosts

    def time(self, size: int, panel_first: bool, threads: int) -> float:
        """Cycles until the last worker is done when tasks of `size` units are dealt out in order."""
        pieces, parts = -(-self.units // size), threads * _PARTS
        shares = sorted(self._share(size, panel_first, part, parts) for part in range(parts))
        # The largest part goes to a worker that gets small ones besides.
        busiest = max(shares[-1] + sum(shares[: _PARTS - 1]), sum(shares) / threads)
        tasks = -(-pieces * self.panels * self.batch // threads)
        fetched = self._traffic(size, panel_first, threads) / self.costs.far_bytes
        return busiest * self.cycles + tasks * self.costs.task + fetched

    def _share(self, size: int, panel_first: bool, part: int, parts: int) -> int:
        """The units of a part. The last piece of the rows may be smaller than the others."""
        pieces = -(-self.units // size)
        missing = pieces * size - self.units
        total = pieces * self.panels * self.batch
        first, last = total * part // parts, total * (part + 1) // parts
        # In this order `repeat` tasks are of one piece, then as many of the next.
        repeat = 1 if panel_first else self.panels
        small = sum(task // repeat % pieces == pieces - 1 for task in range(first, last))
        return (last - first) * size - small * missing

    def _traffic(self, size: int, panel_first: bool, threads: int) -> float:
        """Bytes that a worker fetches from beyond its cache: once for what stays there, else each time it is used."""
        pieces = -(-self.units // size)
        inputs, weights = self.unit_bytes * self.units, self.weight_bytes
        if panel_first:
            stays = inputs + weights // self.panels <= self.costs.near_bytes
            return weights / threads + (inputs if stays else inputs * self.panels / threads) * self.batch
        stays = weights + self.unit_bytes * size <= self.costs.near_bytes
        rereads = 1 if self.unit_bytes * size <= self.costs.near_bytes // 2 else self.panels
        streamed = weights if stays else weights * pieces * self.batch / threads
        return inputs * rereads * self.batch / threads + streamed
