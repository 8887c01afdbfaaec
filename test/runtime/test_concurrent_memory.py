"""Memory that is used again never delays a launch, and never holds two things at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlirt.runtime.concurrent_memory import Use, plan_side_by_side
from mlirt.runtime.launch_order import Access, predecessors
from mlirt.runtime.memory_planning import ALIGNMENT

_BUFFERS = 6
USE = st.tuples(st.integers(0, _BUFFERS - 1), st.booleans(), st.sampled_from([(), (0,), (1,)]))
RUNS = st.lists(st.lists(USE, max_size=3), max_size=10)
SIZES = st.lists(st.integers(0, 3 * ALIGNMENT), min_size=_BUFFERS, max_size=_BUFFERS)


def waits(runs: list[list[Use]], starts: list[int], sizes: list[int]) -> list[tuple[int, ...]]:
    return predecessors(
        [[Access(starts[b], starts[b] + sizes[b], writes, part) for b, writes, part in r] for r in runs]
    )


@given(RUNS, SIZES, st.sets(st.integers(0, _BUFFERS - 1)))
def test_launches_wait_for_data_alone(runs: list[list[Use]], sizes: list[int], kept: set[int]) -> None:
    """Where each buffer has memory of its own, launches wait for the same ones."""
    found = plan_side_by_side(sizes, runs, range(_BUFFERS), kept)
    apart = [1000 * ALIGNMENT * buffer for buffer in range(_BUFFERS)]
    assert waits(runs, list(found.offsets), sizes) == waits(runs, apart, sizes)


@given(RUNS, SIZES, st.sets(st.integers(0, _BUFFERS - 1)))
def test_what_shares_memory_is_used_one_after_the_other(
    runs: list[list[Use]], sizes: list[int], kept: set[int]
) -> None:
    found = plan_side_by_side(sizes, runs, range(_BUFFERS), kept)
    lives = [
        [number for number, uses in enumerate(runs) if any(b == buffer for b, _, _ in uses)] for buffer in range(6)
    ]
    for one in range(_BUFFERS):
        assert found.offsets[one] + sizes[one] <= found.total
        for other in range(one):
            overlap = max(found.offsets[one], found.offsets[other]) < min(
                found.offsets[one] + sizes[one], found.offsets[other] + sizes[other]
            )
            if overlap and lives[one] and lives[other]:
                first, second = sorted((one, other), key=lambda buffer: lives[buffer][0])
                assert max(lives[first]) < min(lives[second])
                assert first not in kept


def test_a_chain_takes_turns_and_branches_lie_apart() -> None:
    def step(source: int, to: int) -> list[Use]:
        return [(source, False, ()), (to, True, ())]

    sizes = [ALIGNMENT] * 5
    chain = [step(number, number + 1) for number in range(4)]
    assert plan_side_by_side(sizes, chain, range(5), [4]).total == 2 * ALIGNMENT
    fork = [step(0, 1), step(1, 2), step(0, 3), step(3, 4)]
    assert plan_side_by_side(sizes, fork, range(5), [2, 4]).total == 5 * ALIGNMENT


def test_only_some_buffers_are_placed() -> None:
    runs: list[list[Use]] = [[(0, False, ()), (1, True, ())], [(1, False, ()), (2, True, ())]]
    assert plan_side_by_side([10, 20, 30], runs, [1], [2]).offsets == (0,)
