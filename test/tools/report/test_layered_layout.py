"""Where nodes go: edges lead down, nothing lies on anything else, chains are straight, whatever the graph is."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mlirt.tools.report.layered_layout import NODE_WIDTH, layout

NODES = 40


@given(st.sets(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=120))
def test_edges_lead_down_and_nodes_are_apart(edges: set[tuple[int, int]]) -> None:
    found = layout(NODES, sorted(edges))
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for x, rank in zip(found.x, found.rank, strict=True):
        rows[rank].append(x)
    for row in rows.values():
        row.sort()
        assert all(right - left >= NODE_WIDTH for left, right in pairwise(row))
    for (source, target), bends in zip(sorted(edges), found.bends, strict=True):
        if source < target:
            assert found.rank[source] < found.rank[target]
            assert len(bends) == found.rank[target] - found.rank[source] - 1


def test_a_chain_is_straight() -> None:
    found = layout(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert list(found.rank) == [0, 1, 2, 3, 4]
    assert len(set(found.x)) == 1


def test_branches_stand_on_either_side_and_are_told_apart() -> None:
    found = layout(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert found.x[0] == found.x[3]
    assert abs((found.x[1] + found.x[2]) / 2 - found.x[0]) <= 1


def test_a_source_stands_right_above_its_reader() -> None:
    assert list(layout(5, [(0, 1), (1, 2), (2, 4), (3, 4)]).rank) == [0, 1, 2, 2, 3]


def test_many_long_edges_have_no_bends() -> None:
    chain = [(one, one + 1) for one in range(2999)]
    found = layout(3000, [*chain, *((one, 2999) for one in range(2900))])
    assert sum(map(len, found.bends)) < 30_000


def test_nothing() -> None:
    assert list(layout(0, []).x) == []
