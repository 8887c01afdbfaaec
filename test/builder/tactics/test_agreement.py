"""A tactic that computes something else than the others, or something else each time, is refused and never chosen."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from contractions import product_text
from fake_driver import FakeDriver, cuda_plan, floats
from fake_timer import FakeTimer, without_compiler
from lowered_network import parse_module
from tiny_plan import tiny_parts

from mlirt.builder.tactics import agreement, measurement
from mlirt.builder.tactics.agreement import SAFE, Outcome, distance_of, judged, outcome_of, tolerance_of
from mlirt.builder.tactics.device_timer import DeviceTimer
from mlirt.builder.tactics.selection import Tuning, select_tactics
from mlirt.builder.tactics.sites import find_sites
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.dialects.target import Target
from mlirt.errors import CompileError
from mlirt.kernels.lib.tactics.registry import TACTIC

_RIGHT = np.linspace(-1, 1, 64, dtype=np.float32)
_TEXT = product_text((64, 64), (64, 64), (64, 64), "f16", (False, False))
_TARGET = Target("cuda")


def outcome(factor: float = 1.0, differing: int = 0) -> Outcome:
    return Outcome((_RIGHT * np.float32(factor),), differing, 4)


def test_a_result_that_differs_from_the_majority_is_refused() -> None:
    verdict = judged({"a": outcome(), "b": outcome(1.05), "c": outcome(1 + 1e-5)}, 1e-3)
    assert list(verdict.refused) == ["b"]
    assert verdict.refused["b"].startswith("differs from a by 0.048 of the largest value")


def test_what_gives_other_bits_is_refused_though_it_is_close() -> None:
    verdict = judged({"a": outcome(differing=2), "b": outcome()}, 1e-3)
    assert verdict.refused == {"a": "gives other bits in 2 of 4 runs from the same memory"}


def test_plain_loops_decide_where_there_is_no_majority() -> None:
    assert judged({"a": outcome(), "b": outcome(2)}, 1e-3).divided
    three = judged({"a": outcome(), "b": outcome(2), SAFE: outcome(3)}, 1e-3)
    assert sorted(three.refused) == ["a", "b"]
    assert list(judged({"a": outcome(), "b": outcome(2), SAFE: outcome(2)}, 1e-3).refused) == ["a"]


def test_each_is_compared_once_where_all_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counted(one: Any, other: Any) -> float:
        nonlocal compared
        compared += 1
        return distance_of(one, other)

    monkeypatch.setattr(agreement, "distance_of", counted)
    assert not judged({str(number): outcome() for number in range(12)}, 1e-3).refused
    assert compared == 11


def test_numbers_out_of_the_range_of_float32_are_compared_in_float64() -> None:
    large = np.array([3e38, -3e38], np.float32)
    assert distance_of(large, -large) == 2.0
    assert distance_of(np.array([np.nan, 1.0], np.float16), np.array([np.nan, 0.5], np.float16)) == 0.5


def test_what_cannot_be_compared_has_no_voice() -> None:
    assert judged({"a": Outcome(()), "b": outcome(), "c": Outcome((), 1, 4)}, 1e-3).refused.keys() == {"c"}


def test_distances() -> None:
    integers, bytes_ = np.arange(200), np.arange(100, dtype=np.int8)
    assert distance_of(integers, np.where(integers < 3, 0, integers)) == 0.01
    assert distance_of(bytes_, bytes_ + np.int8(1)) == 1.0
    assert distance_of(np.array([np.inf, 1.0]), np.array([np.inf, 2.0])) == 0.5
    assert distance_of(np.full(4, np.nan), np.ones(4)) == float("inf")


@pytest.mark.parametrize(("element", "tolerance"), [("f16", 8 * 2.0**-11), ("f32", 8 * 2.0**-24 * 128)])
def test_the_tolerance_is_that_of_the_precision_and_of_long_sums(element: str, tolerance: float) -> None:
    module, context = parse_module(product_text((64, 64), (64, 64), (64, 64), element, (False, False)))
    (site,) = find_sites(module, context, _TARGET)
    assert tolerance_of(site.ops[0], _TARGET, {}) == tolerance
    fast = Target("cuda", features=frozenset({"tf32"}))
    assert tolerance_of(site.ops[0], fast, {}) == 8 * 2.0**-11


class PlantedTimer(FakeTimer):
    """The candidates that are measured give the same, but for some, by name; `names` is what was asked for."""

    def __init__(self, planted: dict[int, Outcome]) -> None:
        super().__init__(outcome=lambda place: planted.get(place, outcome()))


def chosen(timer: FakeTimer, cache: TimingCache | None = None) -> tuple[str, list[str]]:
    """The tactic of a product, and those that were offered, the fastest first."""
    module, context = parse_module(_TEXT)
    (site,) = find_sites(module, context, _TARGET)
    tuning = Tuning(timer, TimingCache() if cache is None else cache)
    select_tactics(module, context, _TARGET, tuning, lambda text, done, total: None)
    name: Any = site.ops[0].attributes.get(TACTIC)
    return name.data if name is not None else site.candidates[0].name, [one.name for one in site.candidates]


@pytest.fixture(autouse=True)
def _compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)


@pytest.mark.parametrize(
    ("planted", "why"),
    [(outcome(1.5), "differs from .* by 0.33 of the largest value"), (outcome(1, 3), "other bits in 3 of 4 runs")],
)
def test_a_planted_wrong_tactic_is_not_chosen_and_is_warned_of(planted: Outcome, why: str) -> None:
    first, names = chosen(PlantedTimer({}))
    assert first == names[0]
    cache = TimingCache()
    with pytest.warns(UserWarning, match=rf"layer fused.matmul: tactic {names[0]} .*{why}.*; it is not used"):
        second, _ = chosen(PlantedTimer({0: planted}), cache)
    assert second in names[1:]
    again, _ = chosen(PlantedTimer({}), TimingCache(cache.serialize()))
    assert again == second, "what was refused is remembered"


def test_a_layer_of_which_all_tactics_are_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "_worth_measuring", list)
    unsteady = FakeTimer(outcome=lambda place: outcome(1, 1))
    with (
        pytest.raises(CompileError, match=r"fused.matmul: each of .* tactics differs"),
        pytest.warns(match="other bits"),
    ):
        chosen(unsteady)


def test_plain_loops_are_asked_where_two_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_of(candidates: Any) -> list[Any]:
        return [one for one in candidates if one.name != SAFE][:2]

    monkeypatch.setattr(measurement, "_worth_measuring", two_of)
    results = iter([outcome(1.5), outcome(), outcome()])
    with pytest.warns(UserWarning, match="differs from"):
        found, names = chosen(FakeTimer(outcome=lambda place: next(results)))
    assert found == names[1]
    assert next(results, None) is None, "the third was asked for"


def test_a_plan_that_gives_other_bits_behind_other_caches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that sees what the caches were swept with, as one does that reads too early."""
    driver = FakeDriver()
    swept: list[int] = []

    def fill(device: int, size: int, byte: int, stream: int) -> None:
        swept.append(byte)
        memory = (ctypes.c_uint8 * size).from_address(device)
        driver.queue(lambda: np.ctypeslib.as_array(memory).fill(byte))

    def unsteady(x: int, y: int, count: int, factor: float, addend: float) -> None:
        floats(y, count)[:] = floats(x, count) + np.float32(len(swept))

    plans = [cuda_plan(tiny_parts), cuda_plan(tiny_parts)]
    x = np.ones((2, 4), np.float32)
    monkeypatch.setattr(driver, "fill", fill)
    timer = DeviceTimer(driver, "sm_90a", 7)
    shapes, feeds = [[x.shape]] * 2, [[x]] * 2
    steady = timer.outcomes(plans, shapes, feeds)
    assert [one.differing for one in steady if one is not None] == [0, 0]
    assert swept == [1, 2] * 2
    import fake_driver

    monkeypatch.setitem(fake_driver.KERNELS, "scale", (unsteady, fake_driver.KERNELS["scale"][1]))
    (found,) = timer.outcomes(plans[:1], shapes[:1], feeds[:1])
    assert found is not None
    assert found.differing > 0


def test_of_large_outputs_parts_are_brought_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1 << 19  # of 4 numbers of 4 bytes: 8 MiB
    x = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
    driver = FakeDriver()
    (found,) = DeviceTimer(driver, "sm_90a", 7).outcomes([cuda_plan(tiny_parts)], [[x.shape]], [[x]])
    assert found is not None
    sampled = found.outputs[0]
    assert sampled.nbytes == 1 << 22
    assert found.differing == 0
    assert len(np.unique(np.diff(sampled))) > 2, "there are gaps between the parts"


def test_a_plan_that_does_not_run_has_no_outcome() -> None:
    def unknown(manifest: dict[str, Any]) -> None:
        manifest["kernels"][0]["symbol"] = "nowhere"

    x = np.ones((2, 4), np.float32)
    timer = DeviceTimer(FakeDriver(), "sm_90a", 7)
    assert timer.outcomes([cuda_plan(tiny_parts, unknown)], [[x.shape]], [[x]]) == [None]


def test_runs_are_compared_by_their_bits() -> None:
    zero, other = [np.zeros(3, np.float32)], [-np.zeros(3, np.float32)]
    assert outcome_of([zero, zero, other]).differing == 1
