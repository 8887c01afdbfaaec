"""Words that NumPy fills for all launches at once: the same as launch by launch, and refused for the same reason."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_plan import with_contracts

from mlirt.errors import PlanError
from mlirt.runtime import launch_binding
from mlirt.runtime.bound_launch import BoundLaunch
from mlirt.runtime.extents import Contract
from mlirt.runtime.launch_words import LaunchArguments
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.plan_file import make_plan
from mlirt.runtime.plan_formulas import PlanFormulas
from mlirt.runtime.program import launches
from mlirt.runtime.shape_binding import ShapeBinder

Maker = Callable[[], Any]
formula = st.sampled_from([0, 16, 64, 256, 4096, "n", ["*", "n", 16], ["-", "n", 2], ["//", 64, "n"], ["-", 32, "n"]])
number = st.sampled_from([0, -3, 2**31, "n", ["*", "n", 2**29], ["//", 8, "n"]])


def outcome(manifest: Manifest, n: int) -> object:
    """The words, sizes and offsets for n rows, or what is wrong."""
    try:
        binding = ShapeBinder(manifest).bind([(n, 4)])
    except PlanError as error:
        return str(error)
    assert binding.words is not None
    one_by_one = binding.arguments.words_of(binding.launches)
    np.testing.assert_array_equal(binding.words, one_by_one)
    return binding.words.tolist(), binding.sizes, dict(binding.offsets), binding.arena_bytes, binding.outputs


def nothing(*_: object) -> None:
    """Not all makes sense, so that it is looked at one by one."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_same_as_launch_by_launch(tiny: Maker, data: st.DataObject) -> None:
    parts = tiny()
    buffers, made, kernels = (parts.manifest[key] for key in ("buffers", "launches", "kernels"))
    kernels[0]["args"][2] = data.draw(st.sampled_from(["i32", "i64"]))
    kernels[0]["written"] = data.draw(st.sampled_from([[1], [0, 1], []]))
    buffers[1]["bytes"] = data.draw(formula)
    buffers.append({"kind": "arena", "bytes": data.draw(formula), "view_of": 1, "view_offset": data.draw(formula)})
    buffers.append({"kind": "arena", "bytes": data.draw(formula), "view_of": 5, "view_offset": data.draw(formula)})
    pointer = {"buffer": data.draw(st.sampled_from([1, 5, 6])), "offset": data.draw(formula)}
    extent = data.draw(formula)
    made[0]["args"][1] = pointer | ({"bytes": extent} if data.draw(st.booleans()) else {})
    made[0]["args"][2] = {"int": data.draw(number)}
    if data.draw(st.booleans()):
        with_contracts(parts)
    manifest = make_plan(parts.manifest, parts.sections, parts.weights).manifest
    n = data.draw(st.integers(0, 9))
    at_once = outcome(manifest, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlanFormulas, "sizes", nothing)
        patch.setattr(LaunchArguments, "words", nothing)
        assert outcome(manifest, n) == at_once


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The launches that were bound one by one since."""
    found: list[int] = []

    def counted(index: int, args: Any, grid: Any) -> BoundLaunch:
        found.append(index)
        return BoundLaunch(index, args, grid)

    monkeypatch.setattr(launch_binding, "BoundLaunch", counted)
    return found


def test_launches_that_fit_are_not_bound_one_by_one(tiny: Maker, bound: list[int]) -> None:
    parts = with_contracts(tiny())
    binder = ShapeBinder(make_plan(parts.manifest, parts.sections, parts.weights).manifest)
    for n in (1, 7):
        binding = binder.bind([(n, 4)])
        assert bound == []
    assert len(binding.launches) == len(bound) == 3


def test_a_launch_that_may_not_fit_is_bound_by_itself(tiny: Maker, bound: list[int]) -> None:
    parts = with_contracts(tiny())
    parts.manifest["launches"][1]["args"][2]["int"] = ["+", ["*", "n", 4], 3]
    parts.manifest["program"] = [0, {"if": {"buffer": 0, "offset": 0}, "then": [1], "else": []}, 2]
    binding = ShapeBinder(make_plan(parts.manifest, parts.sections, parts.weights).manifest).bind([(2, 4)])
    assert bound == [1]
    assert list(launches(binding.program)) == [0, 2]


def test_no_launch_asks_its_contract_alone(tiny: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all keep theirs; one whose integers have no symbols is asked once, when the formulas are prepared."""
    asked: list[int] = []
    extents_of = Contract.extents_of

    def counted(contract: Contract, args: Any, grid: Any) -> Any:
        asked.append(1)
        return extents_of(contract, args, grid)

    monkeypatch.setattr(Contract, "extents_of", counted)
    parts = with_contracts(tiny())
    first = parts.manifest["launches"][0]
    settled = {**first, "args": [*first["args"][:2], {"int": 0}, *first["args"][3:]]}
    parts.manifest["launches"][1:1] = [settled, *[first] * 99]
    parts.manifest["buffers"][1]["last"] = 101
    parts.manifest["buffers"][4].update(first=101, last=103)
    binder = ShapeBinder(make_plan(parts.manifest, parts.sections, parts.weights).manifest)
    bound_launches = len(asked)
    assert bound_launches <= 2
    for n in (2, 3, 4):
        binder.bind([(n, 4)])
        assert len(asked) == bound_launches
