"""The cheapest way to part a graph in two: Dinic's maximum flow."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

_TOLERANCE = 1e-9


class MinimumCut:
    """Nodes are any keys; an edge from a to b costs its capacity when a is on the source's side and b is not."""

    def __init__(self, source: Hashable, sink: Hashable) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._targets: list[int] = []
        self._room: list[float] = []
        self._out: list[list[int]] = []
        self._source, self._sink = self._number(source), self._number(sink)

    def _number(self, key: Hashable) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._out)
            self._out.append([])
        return self._numbers[key]

    def edge(self, start: Hashable, end: Hashable, capacity: float) -> None:
        """Add an edge; `inf` for parts that stay together."""
        first, second = self._number(start), self._number(end)
        for target, origin, room in ((second, first, capacity), (first, second, 0.0)):
            self._out[origin].append(len(self._targets))
            self._targets.append(target)
            self._room.append(room)

    def source_side(self) -> set[Hashable]:
        """The keys on the source's side of the cheapest cut; of equally cheap cuts the one with the fewest."""
        while True:
            levels = self._levels()
            if self._sink not in levels:
                return {key for key, number in self._numbers.items() if number in levels}
            self._block_flow(levels)

    def _levels(self) -> dict[int, int]:
        """Steps from the source along edges with room."""
        levels = {self._source: 0}
        waiting = deque([self._source])
        while waiting:
            node = waiting.popleft()
            for edge in self._out[node]:
                target = self._targets[edge]
                if self._has_room(edge) and target not in levels:
                    levels[target] = levels[node] + 1
                    waiting.append(target)
        return levels

    def _block_flow(self, levels: dict[int, int]) -> None:
        """Send flow along shortest paths until each of them has a full edge.

        An edge that led nowhere, or is full, is not looked at again: a call looks at each edge once, and at each path.
        """
        current = [0] * len(self._out)
        path: list[int] = []
        node = self._source
        while True:
            if node == self._sink:
                node = self._send(path)
            step = self._next_step(node, current, levels)
            if step is not None:
                path.append(step)
                node = self._targets[step]
            elif path:
                node = self._targets[path.pop() ^ 1]
                current[node] += 1
            else:
                return

    def _next_step(self, node: int, current: list[int], levels: dict[int, int]) -> int | None:
        """The first edge of a node that leads one level on and has room; those before it are done with."""
        edges, wanted = self._out[node], levels[node] + 1
        for place in range(current[node], len(edges)):
            edge = edges[place]
            if self._has_room(edge) and levels.get(self._targets[edge]) == wanted:
                current[node] = place
                return edge
        current[node] = len(edges)
        return None

    def _has_room(self, edge: int) -> bool:
        return self._room[edge] > _TOLERANCE

    def _send(self, path: list[int]) -> int:
        """Fill a path from source to sink, cut it before its first full edge, and return where it ends then."""
        amount = min(self._room[edge] for edge in path)
        for edge in path:
            self._room[edge] -= amount
            self._room[edge ^ 1] += amount
        first = next(place for place, edge in enumerate(path) if not self._has_room(edge))
        node = self._targets[path[first] ^ 1]
        del path[first:]
        return node
