"""Shapes that nobody gave: the profile's, else the first lengths with which the plan makes sense."""

from __future__ import annotations

from typing import Any

from tiny_plan import Parts, tiny_parts

from mlirt.runtime.plan_file import make_plan
from mlirt.tools.report.usual_shapes import usual_binding


def _shapes(parts: Parts, **given: list[int]) -> Any:
    return usual_binding(make_plan(parts.manifest, parts.sections, parts.weights).manifest, given).input_shapes


def test_a_batch_is_one_and_what_is_given_counts() -> None:
    assert _shapes(tiny_parts()) == ((1, 4),)
    assert _shapes(tiny_parts(), x=[3, 4]) == ((3, 4),)


def test_the_usual_shape_of_the_profile() -> None:
    parts = tiny_parts()
    parts.manifest["profiles"] = [{"x": {"min": [2, 4], "opt": [5, 4], "max": [9, 4]}}]
    assert _shapes(parts) == ((5, 4),)


def test_lengths_are_tried_until_the_layers_take_one() -> None:
    parts = tiny_parts()
    parts.manifest["symbols"].append({"name": "m", "input": 0, "axis": 1})
    parts.manifest["inputs"][0]["shape"] = ["n", "m"]
    parts.manifest["buffers"][0]["bytes"] = ["*", ["*", "n", "m"], 4]
    need = {"layer": "double", "relation": "equal", "left": "m", "right": 16, "where": 1, "fault": "needs 16"}
    parts.manifest["requirements"] = [need]
    assert _shapes(parts) == ((1, 16),)
