"""The cut that the flow finds costs as little as the best of all cuts."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from mlirt.passes.layout.layouts.minimum_cut import MinimumCut

NODES = range(5)
Edges = list[tuple[int, int, int]]


def cost(edges: Edges, side: set[int]) -> int:
    return sum(capacity for start, end, capacity in edges if start in side and end not in side)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES), st.integers(0, 9)), max_size=14))
def test_no_cut_is_cheaper(edges: Edges) -> None:
    graph = MinimumCut(0, 4)
    for start, end, capacity in edges:
        graph.edge(start, end, capacity)
    found = {node for node in NODES if node in graph.source_side()}
    assert 0 in found
    assert 4 not in found
    cuts = [
        {0, *(node for node, taken in zip((1, 2, 3), picks, strict=True) if taken)}
        for picks in product([0, 1], repeat=3)
    ]
    best = min(cost(edges, side) for side in cuts)
    assert cost(edges, found) == best
    assert len(found) == min(len(side) for side in cuts if cost(edges, side) == best)


class CountingCut(MinimumCut):
    looked_at = 0

    def _has_room(self, edge: int) -> bool:
        self.looked_at += 1
        return super()._has_room(edge)


def work_of_chain(length: int) -> int:
    """How many edges are looked at for a chain of nodes that cost more or less on either side."""
    graph = CountingCut("source", "sink")
    for node in range(length):
        graph.edge("source", node, 3.0 + node % 5)
        graph.edge(node, "sink", 3.0 + (node * 2) % 7)
        for start, end in ((node, node + 1), (node + 1, node)):
            graph.edge(start, end, 2.0)
    graph.source_side()
    return graph.looked_at


def test_work_grows_with_the_graph() -> None:
    assert work_of_chain(2000) < 2.5 * work_of_chain(1000)
