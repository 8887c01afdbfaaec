"""How the rows of an image are cut into tasks for workers: arithmetic only, no IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum, minimum

# Bytes of weights that a core keeps near while it goes through all channels of some rows.
_NEAR_WEIGHTS = 400_000
# Bytes of input rows that it keeps near.
_NEAR_ROWS = 250_000
_TASKS_PER_WORKER = 4
_IMBALANCE = 1.04
_MOST_PANELS = 64


@dataclass(frozen=True)
class Tasks:
    """A task is `rows` rows of one panel of channels. `panel_first`: all rows of a panel come before the next panel."""

    rows: Dim
    panel_first: bool


def choose_tasks(
    rows: Dim, panels: int, batch: Dim, row_bytes: Dim, weight_bytes: int, threads: int, multiple: int = 1
) -> Tasks:
    """How `rows` rows are cut; a task has a multiple of `multiple` rows.

    Many weights are read once, panel by panel, over all rows; few stay near while rows are read once. Tasks are as big
    as they can be without a worker having more to do than the others.
    """
    panel_first = weight_bytes > _NEAR_WEIGHTS
    near = rows if panel_first else minimum(rows, maximum(1, floor_div(_NEAR_ROWS, row_bytes)))
    if isinstance(near, int) and isinstance(rows, int) and isinstance(batch, int):
        units, most = ceil_div(rows, multiple), max(1, near // multiple)
        assert isinstance(units, int)
        sizes = range(most, 0, -1)
        balanced = (size for size in sizes if _imbalance(units, size, panels * batch, threads) < _IMBALANCE)
        return Tasks(next(balanced, 1) * multiple, panel_first)
    cut = minimum(near, maximum(1, floor_div(rows * panels, threads * _TASKS_PER_WORKER)))
    return Tasks(ceil_div(cut, multiple) * multiple, panel_first)


def _imbalance(units: int, size: int, panels: int, threads: int) -> float:
    """The work of the busiest worker over the mean, when tasks of `size` units are dealt out in order."""
    full, rest = divmod(units, size)
    pieces = [size] * full + ([rest] if rest else [])
    tasks = pieces * min(panels, _MOST_PANELS)
    shares = [sum(tasks[len(tasks) * t // threads : len(tasks) * (t + 1) // threads]) for t in range(threads)]
    return max(shares) * threads / sum(tasks)
