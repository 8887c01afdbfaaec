"""The parameters of launches on the CPU that write the borders of buffers before they do anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mlirt.runtime.borders import Borders
from mlirt.runtime.manifest import BORDER_NUMBERS

_HEAD = 3  # the kernel, its parameters, how many borders
_WORDS = 1 + BORDER_NUMBERS + 1  # of a border: where the memory is, its numbers, the byte
_LINE = 8
_NUMBERS = np.arange(1, _WORDS)


@dataclass(frozen=True)
class BorderRows:
    """Where these parameters stand behind all others; the same for all shapes where the rows are."""

    rows: np.ndarray
    """The rows that write borders."""
    heads: np.ndarray
    """The first parameter of each of them."""
    counts: np.ndarray
    """How many borders each may have to write."""
    spots: np.ndarray
    """The first parameter of each border."""
    which: np.ndarray
    """The border that stands there."""
    owner: np.ndarray
    """The row, by its place in `rows`, that writes it."""
    roots: np.ndarray
    """The buffer that has it."""
    count: int
    """How many parameters there are."""

    @staticmethod
    def of(borders: Borders, rows: Mapping[int, int], start: int) -> BorderRows:
        """For the `rows` of launches; the parameters begin behind `start`."""
        of_row: dict[int, list[int]] = {}
        for launch, border in borders.writers:
            if launch in rows:
                of_row.setdefault(rows[launch], []).append(border)
        first = -(-start // _LINE) * _LINE
        at, heads, spots = first, list[int](), list[int]()
        for wanted in of_row.values():
            heads.append(at)
            spots += [at + _HEAD + _WORDS * k for k in range(len(wanted))]
            at += -(-(_HEAD + _WORDS * len(wanted)) // _LINE) * _LINE
        which = np.array([border for wanted in of_row.values() for border in wanted], np.intp)
        counts = np.array([len(wanted) for wanted in of_row.values()], np.int64)
        return BorderRows(
            np.array(list(of_row), np.intp),
            np.array(heads, np.intp),
            counts,
            np.array(spots, np.intp),
            which,
            np.repeat(np.arange(len(counts)), counts),
            np.array(borders.buffers, np.intp)[which],
            at - start if of_row else 0,
        )

    def fill(
        self, table: np.ndarray, parameters: np.ndarray, kernel: int, numbers: np.ndarray, rewritten: np.ndarray
    ) -> None:
        """Let the rows that have to write borders do so; the others are as they were, and have unused parameters."""
        active = rewritten[self.which]
        if not bool(active.any()):
            return
        writes = np.bincount(self.owner, active, len(self.rows)) > 0
        rows, heads = self.rows[writes], self.heads[writes]
        parameters[heads] = table[rows, 0]
        parameters[heads + 1] = table[rows, 1]
        parameters[heads + 2] = self.counts[writes]
        table[rows, 0] = kernel
        table[rows, 1] = parameters.ctypes.data + 8 * heads
        parameters[self.spots[:, None] + _NUMBERS] = numbers[self.which]
        parameters[self.spots + 1] *= active
