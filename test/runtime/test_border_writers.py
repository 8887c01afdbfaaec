"""Whichever way a run takes, the first launch that touches a buffer is one of those that write its border."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tiny_plan import tiny_parts

from mlirt.runtime.border_writers import first_touches
from mlirt.runtime.manifest import BufferArgument, Launch, Manifest
from mlirt.runtime.plan_file import make_plan
from mlirt.runtime.program import Branch, Loop, Place, Program, Step

_PLACE = Place(0, 0)
_TINY = tiny_parts()
_MANIFEST = make_plan(_TINY.manifest, _TINY.sections, _TINY.weights).manifest


def _with(program: Program, touched: list[set[int]]) -> Manifest:
    """A manifest whose launches touch these of four buffers."""
    arguments = [tuple(BufferArgument(i, 0, None, ()) for i in sorted(one)) for one in touched]
    launches = tuple(Launch(0, "", args, (1, 1, 1), no_barrier=False, serial=False) for args in arguments)
    return replace(_MANIFEST, launches=launches, program=program, roots=(0, 1, 2, 3), buffers=_MANIFEST.buffers[:4])


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, list[set[int]]]:
    """Branches in loops and loops in branches, launches numbered in the order of the text."""
    touched: list[set[int]] = []

    def part(depth: int) -> Program:
        return tuple(step(depth) for _ in range(draw(st.integers(0, 3))))

    def step(depth: int) -> Step:
        kind = draw(st.sampled_from(["launch", "launch", "branch", "loop"])) if depth < 3 else "launch"
        if kind == "branch":
            return Branch(_PLACE, part(depth + 1), part(depth + 1))
        if kind == "loop":
            return Loop(_PLACE, part(depth + 1), part(depth + 1))
        touched.append(draw(st.sets(st.integers(0, 3), max_size=2)))
        return len(touched) - 1

    return part(0), touched


@given(programs(), st.data())
def test_the_first_to_touch_a_buffer_is_found_on_every_way(
    case: tuple[Program, list[set[int]]], data: st.DataObject
) -> None:
    program, touched = case
    found = first_touches(_with(program, touched), [0, 1, 2])
    assert len(found) == len(set(found))
    assert all(buffer in touched[launch] for launch, buffer in found)

    def way(steps: Program) -> list[int]:
        taken: list[int] = []
        for one in steps:
            if isinstance(one, int):
                taken.append(one)
            elif isinstance(one, Branch):
                taken += way(one.then if data.draw(st.booleans()) else one.otherwise)
            elif isinstance(one, Loop):
                taken += way(one.before)
                for _ in range(data.draw(st.integers(0, 2))):
                    taken += way(one.body) + way(one.before)
        return taken

    taken = way(program)
    for buffer in (0, 1, 2):
        first = next((launch for launch in taken if buffer in touched[launch]), None)
        assert first is None or (first, buffer) in found


def test_one_after_the_other() -> None:
    assert first_touches(_with((0, 1, 2), [{0}, {0, 1}, {1, 0}]), [0, 1]) == [(0, 0), (1, 1)]


def test_both_sides_of_a_branch_and_what_is_local_to_a_iteration() -> None:
    program: Program = (Branch(_PLACE, (0,), (1,)), Loop(_PLACE, (2,), (3, 4)), 5)
    touched = [{0}, {0}, {1}, {2}, {2, 0}, {2, 0, 1}]
    assert first_touches(_with(program, touched), [0, 1, 2]) == [(0, 0), (1, 0), (2, 1), (3, 2), (5, 2)]
