"""The numbers of borders: they lie in their buffers or the plan is refused, and are those of CPU launches alone."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from mlirt.errors import PlanError
from mlirt.runtime.formula_table import EvaluatedFormulas
from mlirt.runtime.plan_file import make_plan
from mlirt.runtime.shape_binding import bind_shapes

Maker = Callable[[], Any]
# Images of 2 x 4 cells of float32, with a row above and below and one cell at both ends.
BORDER: list[object] = ["n", 2, 24, 1, 4]


def _parts(tiny: Maker, border: list[object]) -> Any:
    """`scale` writes into a buffer that has room for more, to which a border may belong."""
    parts = tiny()
    manifest = parts.manifest
    whole = {"kind": "arena", "bytes": ["*", "n", 96], "halo": "h", "fill": 3, "border": border}
    manifest["buffers"].append({**whole, "first": 0, "last": 1})
    manifest["launches"][0]["args"][1] = {"buffer": 5}
    manifest["launches"][1]["args"][0] = {"buffer": 5}
    return parts


def test_the_numbers_of_a_shape(tiny: Maker) -> None:
    parts = _parts(tiny, BORDER)
    bound = bind_shapes(make_plan(parts.manifest, parts.sections, parts.weights).manifest, [(7, 4)])
    assert bound.borders.buffers == [5]
    assert bound.borders.writers == [(0, 0)]
    assert bound.border_numbers.tolist() == [[7, 2, 24, 1, 4, 3]]


@pytest.mark.parametrize(
    "border",
    [
        ["n", 2, 24, 2, 4],
        ["n", 2, 24, 1, 13],
        ["n", 2, 24, 1, -4],
        [["*", "n", -1], -6, 24, 1, 4],
        [["*", "n", 1 << 40], 1 << 40, 1 << 40, 0, 0],
        [["//", 1, ["-", "n", "n"]], 2, 24, 1, 4],
    ],
)
def test_a_border_outside_of_its_buffer_is_refused(tiny: Maker, border: list[object]) -> None:
    parts = _parts(tiny, border)
    manifest = make_plan(parts.manifest, parts.sections, parts.weights).manifest
    with pytest.raises(PlanError, match="no meaning"):
        bind_shapes(manifest, [(7, 4)])


def test_equal_borders_are_looked_at_once(tiny: Maker) -> None:
    """The second launch touches another buffer with the same border."""
    looked: list[int] = []
    for borders in (1, 2):
        parts = _parts(tiny, BORDER)
        manifest = parts.manifest
        if borders == 2:
            manifest["buffers"].append(manifest["buffers"][5])
            manifest["launches"][1]["args"][0] = {"buffer": 6}
        plan = make_plan(manifest, parts.sections, parts.weights)
        numbered = EvaluatedFormulas.numbered
        with mock.patch.object(EvaluatedFormulas, "numbered", autospec=True, side_effect=numbered) as looking:
            bound = bind_shapes(plan.manifest, [(7, 4)])
        assert len(bound.border_numbers) == borders
        looked.append(looking.call_count)
    assert looked == [1, 1]


@pytest.mark.parametrize("change", [{"border": [1, 2]}, {"halo": None, "fill": 0}])
def test_a_border_is_five_numbers_of_a_halo(tiny: Maker, change: dict[str, object]) -> None:
    parts = _parts(tiny, BORDER)
    parts.manifest["buffers"][5].update(change)
    with pytest.raises(PlanError, match="expected 5 numbers"):
        make_plan(parts.manifest, parts.sections, parts.weights)
