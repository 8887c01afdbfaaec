"""The cut that the flow finds costs as little as the best of all cuts."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from mlirt.passes.lowering.layouts.minimum_cut import MinimumCut

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
