"""Where the nodes of an acyclic graph go in a picture that is read from the top down: Sugiyama's method.

1. The rank of a node is the longest path to it; a node that reads nothing stands right above its first reader.
2. An edge that passes ranks has a bend in each of them, which all edges of its source share.
3. The order within ranks follows the mean place of the neighbours, going down and up by turns.
4. Positions are as near to the mean of the neighbours as order and gaps allow (isotonic regression, by pooling).

Pure arithmetic on numbers, linear in nodes and bends but for the sorting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

NODE_WIDTH, NODE_HEIGHT, RANK_HEIGHT = 180, 40, 76
_NODE_ROOM, _BEND_ROOM = NODE_WIDTH + 24, 22
_MAX_BENDS = 20_000
_SWEEPS = 6


@dataclass(frozen=True)
class Layout:
    """The middle of each node along x, its rank, and for each edge the x of its bends, one for each rank it passes."""

    x: Sequence[int]
    rank: Sequence[int]
    bends: Sequence[Sequence[int]]


def layout(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Place `count` nodes; an edge leads from a lower number to a higher one, and others are left out of the ranks."""
    forward = [(source, target) for source, target in edges if source < target]
    ranks = _ranks(count, forward)
    grid = _Grid(ranks, forward, _longest_bent(ranks, forward))
    grid.order()
    x = grid.positions()
    return Layout(x[:count], ranks, [[x[bend] for bend in grid.bends_of(edge)] for edge in edges])


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    ranks = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    reads = [False] * count
    for source, target in edges:
        readers[source].append(target)
        reads[target] = True
    for node in range(count):
        for reader in readers[node]:
            ranks[reader] = max(ranks[reader], ranks[node] + 1)
    for node in range(count):
        if readers[node] and not reads[node]:
            ranks[node] = min(ranks[reader] for reader in readers[node]) - 1
    return ranks


def _longest_bent(ranks: Sequence[int], edges: Iterable[tuple[int, int]]) -> int:
    """How many ranks an edge may pass with bends, so that there are not too many of them; longer ones are straight."""
    passed: dict[int, int] = {}
    for source, target in edges:
        passed[source] = max(passed.get(source, 0), ranks[target] - ranks[source] - 1)
    longest = max(passed.values(), default=0)
    while sum(length for length in passed.values() if length <= longest) > _MAX_BENDS:
        longest //= 2
    return longest


@dataclass
class _Grid:
    """Nodes, and behind them bends, by rank."""

    ranks: Sequence[int]
    edges: Sequence[tuple[int, int]]
    longest: int
    rows: list[list[int]] = field(init=False)
    above: list[list[int]] = field(init=False)
    below: list[list[int]] = field(init=False)
    chains: dict[int, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.ranks)
        self.rows = [[] for _ in range(max(self.ranks, default=0) + 1)]
        for node, rank in enumerate(self.ranks):
            self.rows[rank].append(node)
        self.above, self.below = [[] for _ in range(count)], [[] for _ in range(count)]
        self.chains = {}
        for source, target in self.edges:
            passed = self.ranks[target] - self.ranks[source] - 1
            if passed <= self.longest:
                chain = self._chain(source, passed)
                self._join(chain[passed - 1] if passed else source, target)

    def _chain(self, source: int, length: int) -> list[int]:
        """The bends of a source, so many at least."""
        chain = self.chains.setdefault(source, [])
        while len(chain) < length:
            bend = len(self.above)
            self.above.append([])
            self.below.append([])
            self.rows[self.ranks[source] + 1 + len(chain)].append(bend)
            self._join(chain[-1] if chain else source, bend)
            chain.append(bend)
        return chain

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def bends_of(self, edge: tuple[int, int]) -> list[int]:
        passed = self.ranks[edge[1]] - self.ranks[edge[0]] - 1
        return self.chains.get(edge[0], [])[:passed] if 0 < passed <= self.longest else []

    def order(self) -> None:
        place = [0.0] * len(self.above)
        for row in self.rows:
            for at, one in enumerate(row):
                place[one] = at
        for sweep in range(_SWEEPS):
            neighbours = self.above if sweep % 2 == 0 else self.below
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                ideal = {one: _mean(neighbours[one], place, place[one]) for one in row}
                row.sort(key=ideal.__getitem__)
                for at, one in enumerate(row):
                    place[one] = at

    def positions(self) -> list[int]:
        x = [0.0] * len(self.above)
        gaps = [[self._gap(a, b) for a, b in pairwise(row)] for row in self.rows]
        for row, apart in zip(self.rows, gaps, strict=True):
            _spread(row, apart, [0.0] * len(row), x)
        pairs = list(zip(self.rows, gaps, strict=True))
        for sweep in range(_SWEEPS):
            neighbours = self.above if sweep % 2 == 0 else self.below
            for row, apart in pairs if sweep % 2 == 0 else reversed(pairs):
                _spread(row, apart, [_mean(neighbours[one], x, x[one]) for one in row], x)
        left = min(x, default=0.0)
        return [round(one - left) for one in x]

    def _gap(self, left: int, right: int) -> float:
        count = len(self.ranks)
        return sum(_NODE_ROOM if one < count else _BEND_ROOM for one in (left, right)) / 2


def _mean(neighbours: Sequence[int], place: Sequence[float], otherwise: float) -> float:
    return sum(place[one] for one in neighbours) / len(neighbours) if neighbours else otherwise


def _spread(row: Sequence[int], gaps: Sequence[float], ideals: Sequence[float], x: list[float]) -> None:
    """Set the places of a row: nearest to the ideals by least squares, in this order and with these gaps."""
    starts = list(accumulate(gaps, initial=0.0))[: len(row)]
    pools: list[tuple[float, int]] = []
    for ideal, start in zip(ideals, starts, strict=True):
        mean, size = ideal - start, 1
        while pools and pools[-1][0] > mean:
            before, others = pools.pop()
            mean, size = (before * others + mean * size) / (others + size), others + size
        pools.append((mean, size))
    shifts = [mean for mean, size in pools for _ in range(size)]
    for one, shift, start in zip(row, shifts, starts, strict=True):
        x[one] = shift + start
