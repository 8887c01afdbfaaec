"""Sizes from values of inputs: arithmetic with whole numbers, in which what is not known stays so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_plan import tiny_parts

from mlirt.errors import PlanError
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.manifest_parser import parse_manifest
from mlirt.runtime.size_program import SizeProgram


def program(*steps: object) -> SizeProgram:
    return SizeProgram(manifest_with(list(steps)))


def manifest_with(steps: object) -> Manifest:
    parts = tiny_parts()
    manifest = parse_manifest(
        parts.manifest, list(parts.sections), {key: array.nbytes for key, array in parts.weights.items()}
    )
    return replace(manifest, info={"size_program": steps})


@pytest.mark.parametrize(
    ("kind", "a", "b", "result"),
    [
        ("sum", 5, 3, 8),
        ("sub", 5, 3, 2),
        ("prod", 5, 3, 15),
        ("div", 7, 2, 3),
        ("div", -7, -2, 3),
        ("floor_div", 7, 2, 3),
        ("max", 5, 3, 5),
        ("min", 5, 3, 3),
        ("equal", 3, 3, 1),
        ("equal", 3, 4, 0),
        ("less", 3, 4, 1),
        ("greater", 3, 4, 0),
    ],
)
def test_arithmetic(kind: str, a: int, b: int, result: int) -> None:
    steps = [["value", "s", 0], ["value", "s", 1], [kind, 0, 1], ["size", "m", 2]]
    assert program(*steps).sizes({"s": [a, b]}, {}) == {"m": result}


def test_what_is_not_known_stays_so() -> None:
    """A value that is not set, a symbol without a value, a division by zero, a negative length."""
    made = program(
        ["value", "s", 0], ["size", "a", 0], ["length", ["+", "n", 1]], ["size", "b", 2],
        ["number", 0], ["div", 2, 4], ["size", "c", 5], ["number", -1], ["size", "d", 7],
        ["select", 4, 5, 2], ["size", "e", 9], ["length", "e"], ["size", "f", 11],
    )  # fmt: skip
    assert made.inputs == ["s"]
    assert made.sizes({}, {"n": 4}) == {"b": 5, "e": 5, "f": 5}
    assert made.sizes({"s": [2]}, {}) == {"a": 2}
    assert made.sizes({"s": []}, {}) == {}


@pytest.mark.parametrize(
    "steps",
    [
        3,
        ["number"],
        [["number", 1.5]],
        [["number", 1 << 63]],
        [["number", True]],
        [["value", "s", -1]],
        [["value", 3, 0]],
        [["sum", 0, 1]],
        [["number", 1], ["sum", 0, 1]],
        [["number", 1], ["select", 0, 0]],
        [["number", 1], ["power", 0, 0]],
        [["size", "a", 0]],
        [[]],
    ],
)
def test_damaged_steps(steps: object) -> None:
    with pytest.raises(PlanError, match=r"info\.size_program"):
        SizeProgram(manifest_with(steps))
