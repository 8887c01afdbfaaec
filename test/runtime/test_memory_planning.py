"""Memory planning: what `plan` chooses is proven by `verify`, and `verify` catches what is wrong.

tensorrt-features.md#18.7.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.runtime import memory_planning
from mlirt.runtime.memory_planning import ALIGNMENT, MemoryPlan, MemoryPlanError, Request, aligned, plan, verify

HALO_SIZES = {"a": 4096, "b": 1000, "c": 256}


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    found: list[Request] = []
    for _ in range(draw(st.integers(0, 40))):
        first = draw(st.integers(0, 30))
        last = draw(st.integers(first, 35))
        halo = draw(st.sampled_from([None, None, None, *HALO_SIZES]))
        size = HALO_SIZES[halo] if halo else draw(st.integers(0, 5000))
        found.append(Request(size, first, last, halo))
    return found


def overlaps_by_brute_force(found: list[Request], offsets: tuple[int, ...]) -> bool:
    for i, a in enumerate(found):
        for j, b in enumerate(found[:i]):
            apart = offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i] or not (a.size and b.size)
            together = a.first <= b.last and b.first <= a.last
            if apart:
                continue
            if together or a.halo != b.halo or (a.halo is not None and offsets[i] != offsets[j]):
                return True
    return False


@given(requests())
def test_a_plan_is_proven(found: list[Request]) -> None:
    chosen = plan(found)
    verify(found, chosen.offsets, chosen.total)
    assert not overlaps_by_brute_force(found, chosen.offsets)
    assert all(offset % ALIGNMENT == 0 for offset in chosen.offsets)


@given(requests(), st.data())
def test_verify_agrees_with_brute_force_on_any_offsets(found: list[Request], data: st.DataObject) -> None:
    offsets = tuple(data.draw(st.integers(0, 12)) * 512 for _ in found)
    total = max((offset + request.size for offset, request in zip(offsets, found, strict=True)), default=0)
    if overlaps_by_brute_force(found, offsets):
        with pytest.raises(MemoryPlanError, match="overlap"):
            verify(found, offsets, total)
    else:
        verify(found, offsets, total)


@given(requests())
def test_a_plan_needs_no_more_than_all_buffers_side_by_side(found: list[Request]) -> None:
    assert plan(found).total <= sum(aligned(request.size) for request in found)


def test_buffers_that_never_meet_share_memory() -> None:
    chain = [Request(1000, i, i + 1) for i in range(10)]
    assert plan(chain).total == 2 * aligned(1000)


def test_the_smallest_gap_that_fits_is_taken() -> None:
    found = [Request(4096, 0, 1), Request(3000, 0, 9), Request(2900, 0, 1), Request(2800, 0, 9), Request(2700, 5, 6)]
    assert plan(found).offsets[4] == plan(found).offsets[2]


def test_a_halo_class_shares_slots_only_inside_itself() -> None:
    found = [Request(512, 0, 1, "x"), Request(512, 2, 3, "x"), Request(512, 4, 5), Request(512, 6, 7, "y")]
    offsets = plan(found).offsets
    assert offsets[0] == offsets[1]
    assert len({offsets[0], offsets[2], offsets[3]}) == 3


def test_no_buffers_need_no_memory() -> None:
    assert plan([]) == MemoryPlan((), 0)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (Request(-1, 0, 1), "size -1"),
        (Request(8, 3, 2), r"alive in \[3, 2\]"),
        (Request(8, -1, 2), r"alive in \[-1, 2\]"),
    ],
)
def test_an_impossible_request_is_refused(request_: Request, why: str) -> None:
    with pytest.raises(MemoryPlanError, match=why):
        plan([request_])


def test_a_halo_class_with_two_sizes_is_refused() -> None:
    with pytest.raises(MemoryPlanError, match="different sizes"):
        plan([Request(8, 0, 1, "x"), Request(16, 2, 3, "x")])


@pytest.mark.parametrize("count", [200, 2000])
def test_each_buffer_of_a_chain_is_held_against_those_that_it_meets(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = 0
    gap = memory_planning.best_gap

    def counted(alive: Sequence[memory_planning.Placed], size: int, base: int) -> int:
        nonlocal held
        held += len(alive)
        return gap(alive, size, base)

    monkeypatch.setattr(memory_planning, "best_gap", counted)
    chain = [Request(1000 + 7 * (i % 13), i, i + 2) for i in range(count)]
    chosen = plan(chain)
    verify(chain, chosen.offsets, chosen.total)
    assert count < held <= (16 if count == 200 else 4) * count  # few are placed in several orders


def test_buffers_that_all_meet_are_not_held_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_planning, "best_gap", None)
    fan_out = [Request(1000 + 7 * (i % 13), i, 2000) for i in range(2000)]
    chosen = plan(fan_out)
    verify(fan_out, chosen.offsets, chosen.total)
    assert chosen.total == sum(aligned(request.size) for request in fan_out)


@given(requests())
def test_a_plan_by_time_is_proven(found: list[Request]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_planning, "_PAIRS", -1)
        patch.setattr(memory_planning, "_PAIRS_EACH", 0)
        chosen = plan(found)
    verify(found, chosen.offsets, chosen.total)
    assert not overlaps_by_brute_force(found, chosen.offsets)


def test_a_plan_by_time_takes_over_what_is_free() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_planning, "_PAIRS", -1)
        patch.setattr(memory_planning, "_PAIRS_EACH", 0)
        assert plan([Request(1000, i, i + 1) for i in range(10)]).total == 2 * aligned(1000)
        both_sides = [Request(512, 0, 1), Request(512, 0, 3), Request(512, 0, 2), Request(1024, 4, 5)]
        assert plan(both_sides).total == 3 * 512


def _random_buffers(count: int, seed: int) -> list[Request]:
    """Buffers of 1 to 400 KB, most of which live for a step or two, and some for up to thirty."""
    rng = np.random.default_rng(seed)
    lives = [1 + (int(rng.integers(1, 30)) if rng.random() < 0.2 else 0) for _ in range(count)]
    return [Request(int(rng.integers(1, 400)) * 1024, i, i + life) for i, life in enumerate(lives)]


def _largest_live_set(found: list[Request]) -> int:
    last = max(request.last for request in found)
    return max(sum(aligned(one.size) for one in found if one.first <= step <= one.last) for step in range(last + 1))


@pytest.mark.parametrize("count", [60, 150, 500])
def test_plans_are_near_what_is_alive_at_once(count: int) -> None:
    """The largest first alone takes up to 1.18 of it."""
    for seed in range(8 if count < 500 else 2):
        found = _random_buffers(count, seed)
        chosen = plan(found)
        verify(found, chosen.offsets, chosen.total)
        assert chosen.total <= 1.15 * _largest_live_set(found)


def test_many_buffers_are_placed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[int] = []
    place = memory_planning._place_in_gaps  # pyright: ignore[reportPrivateUsage]

    def counted(requests: list[Request], members: list[int], offsets: list[int], base: int) -> None:
        placed.append(len(members))
        place(requests, members, offsets, base)

    monkeypatch.setattr(memory_planning, "_place_in_gaps", counted)
    plan(_random_buffers(2500, 0))
    assert placed == [2500]
    plan(_random_buffers(150, 2))
    assert placed == [2500, *[150] * (len(placed) - 1)]
    assert 2 <= len(placed) - 1 <= 4
