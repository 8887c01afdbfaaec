"""Ranks that only the run knows: the importer takes one for granted, and the run checks that it was right.

Exporters write `squeeze` as a branch on whether a dimension is 1, with one rank on each side, or as a Squeeze without
axes. No engine can have both ranks; the one with which the rest of the network makes sense is the one that the model
was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from mlirt.errors import InvalidModelError, UnsupportedError

Assumptions: TypeAlias = "Mapping[str, bool]"
# For each conflict there are two more readings of the model.
MAX_READINGS = 32


class RankConflict(UnsupportedError):
    """The node `name` has a result of one rank or of another one."""

    def __init__(self, name: str, refusal: UnsupportedError) -> None:
        super().__init__(str(refusal))
        self.name = name


@dataclass(frozen=True)
class Reading:
    """A network under assumptions, and how many branches and declared ranks made no sense under them."""

    module: ModuleOp
    mismatches: int


def best_reading(read: Callable[[Assumptions], Reading]) -> ModuleOp:
    """The network under the assumptions with which it makes most sense; raises the first error where it never does."""
    search = _Search(read)
    search.run({})
    if search.best is None:
        assert search.first_error is not None
        raise search.first_error
    return search.best.module


class _Search:
    def __init__(self, read: Callable[[Assumptions], Reading]) -> None:
        self.read = read
        self.readings = 0
        self.best: Reading | None = None
        self.first_error: UnsupportedError | InvalidModelError | None = None

    def run(self, assumed: Assumptions) -> None:
        if self.readings >= MAX_READINGS or (self.best is not None and self.best.mismatches == 0):
            return
        self.readings += 1
        try:
            found = self.read(assumed)
        except RankConflict as conflict:
            self.first_error = self.first_error or conflict
            for side in (True, False):
                self.run({**assumed, conflict.name: side})
        except (UnsupportedError, InvalidModelError) as error:
            if not assumed:
                raise
            self.first_error = self.first_error or error
        else:
            if self.best is None or found.mismatches < self.best.mismatches:
                self.best = found
