"""Nodes of memory, read from a folder as Linux makes it, and where groups of workers are at home."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.runtime.numa_nodes import homes, numa_nodes, processor_list


def system(folder: Path, lists: dict[int, str]) -> Path:
    for number, text in lists.items():
        (folder / f"node{number}").mkdir()
        (folder / f"node{number}" / "cpulist").write_text(text, encoding="ascii")
    (folder / "possible").write_text("0-1", encoding="ascii")
    return folder


def test_nodes_in_their_order(tmp_path: Path) -> None:
    folder = system(tmp_path, {10: "8-11\n", 0: "0-1,4-5\n", 2: "2,3,6,7\n", 3: "\n"})
    nodes = numa_nodes(frozenset(range(12)), folder)
    assert [sorted(node) for node in nodes] == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 10, 11]]


def test_processors_that_a_process_may_not_use_do_not_count(tmp_path: Path) -> None:
    folder = system(tmp_path, {0: "0-3", 1: "4-7"})
    assert numa_nodes(frozenset({2, 3, 4}), folder) == [frozenset({2, 3}), frozenset({4})]
    assert numa_nodes(frozenset({5}), folder) == [frozenset({5})]


@pytest.mark.parametrize("lists", [{}, {0: "0-1"}, {0: "some"}])
def test_one_node_where_the_system_does_not_tell_all(tmp_path: Path, lists: dict[int, str]) -> None:
    assert numa_nodes(frozenset({0, 1, 2}), system(tmp_path, lists)) == [frozenset({0, 1, 2})]


def test_lists() -> None:
    assert processor_list("0-2,5\n") == {0, 1, 2, 5}
    assert processor_list("\n") == frozenset()
    with pytest.raises(ValueError, match="invalid literal"):
        processor_list("a-b")


_LEFT, _RIGHT = frozenset(range(4)), frozenset(range(4, 8))


def test_groups_stay_on_a_node() -> None:
    assert homes([_LEFT, _RIGHT], 2, 4) == [[_LEFT] * 4, [_RIGHT] * 4]
    assert homes([_LEFT, _RIGHT], 4, 2) == [[_LEFT] * 2] * 2 + [[_RIGHT] * 2] * 2
    assert homes([_LEFT, _RIGHT], 1, 4) == [[_LEFT] * 4]
    assert homes([_LEFT], 2, 2) == [[None] * 2] * 2


def test_a_large_group_has_workers_on_all_nodes() -> None:
    assert homes([_LEFT, _RIGHT], 1, 8) == [[_LEFT] * 4 + [_RIGHT] * 4]
    (both,) = homes([_LEFT, _RIGHT], 1, 12)
    assert (both.count(_LEFT), both.count(_RIGHT)) == (8, 4)
