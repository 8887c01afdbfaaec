"""Placements for sizes that change: `verify` proves them all, and sizes that grow alike are planned once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.runtime import memory_planning, placements
from mlirt.runtime.memory_planning import Request, plan, verify
from mlirt.runtime.placements import Placements

lives = st.tuples(st.integers(0, 20), st.integers(0, 6)).map(lambda one: (one[0], one[0] + one[1]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[str | None], list[list[int]]]:
    """Lifetimes, halo classes, and sizes for several shapes; those of a class are equal."""
    found = draw(st.lists(lives, max_size=12))
    halos = [draw(st.sampled_from([None, None, None, "a", "b"])) for _ in found]
    shapes: list[list[int]] = []
    for _ in range(draw(st.integers(1, 6))):
        of_class = {"a": draw(st.integers(0, 3000)), "b": draw(st.integers(0, 3000))}
        factor = draw(st.integers(1, 40))
        own = [factor * (100 + 7 * i) if draw(st.booleans()) else draw(st.integers(0, 9000)) for i in range(len(found))]
        shapes.append([of_class[halo] if halo else size for halo, size in zip(halos, own, strict=True)])
    return found, halos, shapes


@given(cases())
def test_every_placement_is_proven(case: tuple[list[tuple[int, int]], list[str | None], list[list[int]]]) -> None:
    found, halos, shapes = case
    placed = Placements(found, halos)
    for sizes in [*shapes, *shapes]:
        offsets, total, rewritten = placed.place(np.array(sizes, np.int64))
        assert not rewritten.any()
        requests = [Request(size, *life, halo) for size, life, halo in zip(sizes, found, halos, strict=True)]
        verify(requests, offsets.tolist(), total)
        assert all(offset == 0 for offset, size in zip(offsets.tolist(), sizes, strict=True) if not size)


@st.composite
def bordered(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[str | None], list[bool], list[list[int]]]:
    """Lifetimes, halo classes, of whom the border can be written again, and sizes for several shapes."""
    found, halos, shapes = draw(cases())
    return found, halos, [halo is not None and draw(st.booleans()) for halo in halos], shapes


@given(bordered())
def test_borders_are_what_they_should_be_whenever_they_are_read(
    case: tuple[list[tuple[int, int]], list[str | None], list[bool], list[list[int]]],
) -> None:
    """Memory as small numbers: every buffer writes its own number inside, and -1 stands for a border.

    Whose border has to be written again writes it at first; that of the others is there before the first run.
    """
    found, halos, rewritable, shapes = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placements, "_SMALL_UNITS", 0)
        patch.setattr(placements, "ALIGNMENT", 1)
        patch.setattr(memory_planning, "ALIGNMENT", 1)
        placed = Placements(found, halos, rewritable)
        for sizes in [*shapes, *shapes]:
            offsets, total, rewritten = placed.place(np.array(sizes, np.int64))
            assert not (rewritten & ~np.array(rewritable, bool)).any()
            spans = [slice(int(at), int(at) + size) for at, size in zip(offsets, sizes, strict=True)]
            memory = np.zeros(total, np.int64)
            for i, span in enumerate(spans):
                if halos[i] and not rewritten[i]:
                    memory[span] = -1
            for step in [*range(30)] * 2:
                for i, span in enumerate(spans):
                    if found[i][0] == step:
                        if rewritten[i]:
                            memory[span][::7] = -1
                        inside = np.arange(sizes[i]) % 7 > 0 if halos[i] else np.ones(sizes[i], bool)
                        memory[span][inside] = i
                for i, span in enumerate(spans):
                    if found[i][0] <= step <= found[i][1]:
                        inside = np.arange(sizes[i]) % 7 > 0 if halos[i] else np.ones(sizes[i], bool)
                        assert (memory[span][inside] == i).all()
                        assert (memory[span][~inside] == -1).all()


def test_borders_that_can_be_written_again_share_memory() -> None:
    """Images between whole buffers: with slots of their own they would take three times the memory."""
    size, lives = 1 << 20, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    halos = ["a", "b", None, "c", "d"]
    sizes = np.array([size] * len(lives))
    apart = Placements(lives, halos).place(sizes)
    shared = Placements(lives, halos, [halo is not None for halo in halos]).place(sizes)
    assert (apart.total, apart.rewritten.sum()) == (5 * size, 0)
    assert (shared.total, shared.rewritten.tolist()) == (2 * size, [True, True, False, True, True])


def test_small_arenas_keep_their_borders() -> None:
    lives, halos = [(0, 1), (1, 2), (2, 3)], ["a", "b", "c"]
    kept = Placements(lives, halos, [True] * 3).place(np.array([4096] * 3))
    assert (kept.total, kept.rewritten.sum()) == (3 * 4096, 0)


def test_small_shapes_first_do_not_keep_memory_apart_in_large_ones() -> None:
    lives, halos = [(i, i + 1) for i in range(8)], [str(i) for i in range(8)]
    placed = Placements(lives, halos, [True] * 8)
    assert placed.place(np.array([1024] * 8)).total == 8 * 1024
    for size in (1 << 15, 1 << 16, 1 << 20, 3 << 20):
        assert placed.place(np.array([size] * 8)).total <= (8 * size if 8 * size <= 1 << 18 else 2 * size)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many buffers were planned, by each plan."""
    found: list[int] = []

    def counted(requests: list[Request]) -> Any:
        found.append(len(requests))
        return plan(requests)

    monkeypatch.setattr(placements, "plan", counted)
    return found


def test_sizes_that_grow_alike_are_planned_once(planned: list[int]) -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(1, 200, 100) * 256 * 9
    placed = Placements([(i, i + 1 + i % 3) for i in range(100)], [None] * 100)
    totals = {factor: placed.place(base * factor).total for factor in (4, 1, 7, 64, 2, 1000)}
    assert planned == [100]
    for factor, total in totals.items():
        needed = plan([Request(int(size) * factor, i, i + 1 + i % 3) for i, size in enumerate(base)]).total
        assert total <= 1.15 * needed


def test_a_loose_placement_is_planned_anew(planned: list[int]) -> None:
    """Another buffer has become the large one, so that stretching would take ten times the memory."""
    placed = Placements([(0, 1), (1, 2), (2, 3)], [None] * 3)
    small, large = 1 << 12, 1 << 20
    assert placed.place(np.array([small, small, large])).total == large + small
    assert placed.place(np.array([large, small, small])).total == large + small
    assert planned == [3, 3]
    for sizes in ([small, small, large], [large, small, small]):
        assert placed.place(2 * np.array(sizes)).total == 2 * (large + small)
    assert planned == [3, 3]


def test_what_had_no_bytes_has_no_place_yet(planned: list[int]) -> None:
    placed = Placements([(0, 1), (0, 1)], [None, None])
    assert placed.place(np.array([0, 512])).total == 512
    assert placed.place(np.array([512, 512])).total == 1024
    assert planned == [2, 2]


def test_looser_placements_within_what_was_taken_before(planned: list[int]) -> None:
    placed = Placements([(0, 1), (1, 2), (2, 3)], [None] * 3)
    large = 1 << 20
    assert placed.place(np.array([large, large, large])).total == 2 * large
    assert placed.place(np.array([large, large // 2, large])).total <= 2 * large
    assert planned == [3]
    assert placed.place(np.array([large // 2, 2 * large, large // 2])).total == 2.5 * large
    assert planned == [3, 3]
