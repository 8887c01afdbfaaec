"""Tiles of results, which the kernels of products and convolutions are cut into, and what is shared of their costs.

A tile is `rows` x `columns` results that are computed at once: by a block of threads, by warpgroups, or in the
registers of a core. What else there is to choose (stages, clusters, parts of a sum) are the fields of its kind; a
`work` tells how many microseconds it takes with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter


@dataclass(frozen=True)
class Tile:
    """`rows` x `columns` results at once."""

    rows: int
    columns: int

    def cover(self, rows: int, columns: int) -> int:
        """How many tiles so many rows and columns take."""
        return -(-rows // self.rows) * -(-columns // self.columns)


@dataclass(frozen=True)
class RegisterTile(Tile):
    """A tile of accumulators in the vector registers of a core: `columns` counts vectors.

    Of a convolution the rows are pixels, and a vector is a block of channels.
    """

    def width(self, lanes: int) -> int:
        """Columns of numbers that the tile spans."""
        return self.columns * lanes

    @property
    def pixels(self) -> int:
        return self.rows

    @property
    def blocks(self) -> int:
        return self.columns

    @property
    def vectors(self) -> int:
        return self.columns


_MAX_TILES = 6  # register tiles of one layer that are worth a measurement
_CYCLES = 3000.0  # of a core in a microsecond, about
_TIE = 1e-9  # in the order of equal costs


def tile_estimates(costs: Mapping[RegisterTile, float], times: float) -> dict[str, float]:
    """The best of some register tiles by name, `14x2`, with the microseconds of a layer that takes `times` times their
    costs in cycles; the best is the first of those that cost the same.
    """
    best = islice(costs.items(), _MAX_TILES)
    return {
        f"{tile.rows}x{tile.columns}": cost * times / _CYCLES * (1 + _TIE * number)
        for number, (tile, cost) in enumerate(best)
    }


def tile_named(name: str) -> RegisterTile | None:
    """The register tile that `tile_estimates` calls so; None for no name, or one of another kind."""
    found = re.fullmatch(r"(\d+)x(\d+)", name)
    return RegisterTile(int(found[1]), int(found[2])) if found else None


def worth_measuring(costs: Iterable[tuple[float, str]], far: float, most: int) -> dict[str, float]:
    """The names of the cheapest tiles with their costs, without those that cost `far` times as much, at most `most`."""
    found = sorted(costs, key=itemgetter(0))
    return {name: cost for cost, name in found[:most] if cost <= far * found[0][0]}


__all__ = ["RegisterTile", "Tile", "tile_estimates", "tile_named", "worth_measuring"]
