"""Builds and loads collect garbage rarely; what the program had chosen comes back."""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from growth_networks import chain
from onnx_models import one_node

import mlirt
from mlirt.runtime import engine
from mlirt.runtime.garbage_collection import rare_collections
from mlirt.runtime.plan_file import Plan, read_plan


@pytest.fixture(autouse=True)
def thresholds() -> Generator[tuple[int, int, int]]:
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_thresholds_are_higher_inside_and_as_before_behind() -> None:
    gc.set_threshold(700, 10, 10)
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold()[0] >= 200_000
        assert gc.get_threshold()[0] >= 200_000
    assert gc.get_threshold() == (700, 10, 10)


def test_an_error_restores_them() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="lost"), rare_collections():
        raise ValueError("lost")
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (1_000_000, 5, 5)])
def test_what_is_off_or_rarer_stays(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with rare_collections():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_what_is_chosen_during_a_build_stays() -> None:
    gc.set_threshold(700, 10, 10)
    with rare_collections():
        gc.set_threshold(900, 11, 11)
    assert gc.get_threshold() == (900, 11, 11)


def test_builds_collect_rarely() -> None:
    seen: list[int] = []
    gc.set_threshold(700, 10, 10)

    def progress(text: str, done: int, total: int) -> None:
        seen.append(gc.get_threshold()[0])

    model, _ = one_node("Relu", [np.zeros(4, np.float32)])
    mlirt.compile(model.SerializeToString(), target="cpu", progress=progress)
    assert seen
    assert min(seen) >= 200_000
    assert gc.get_threshold() == (700, 10, 10)


def test_a_load_collects_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = one_node("Relu", [np.zeros(4, np.float32)])
    mlirt.compile(model.SerializeToString(), target="cpu").save(tmp_path / "relu.plan")
    seen: list[int] = []

    def read(*given: Any, **named: Any) -> Plan:
        seen.append(gc.get_threshold()[0])
        return read_plan(*given, **named)

    gc.set_threshold(700, 10, 10)
    monkeypatch.setattr(engine, "read_plan", read)
    mlirt.load(tmp_path / "relu.plan")
    assert seen == [200_000]
    assert gc.get_threshold() == (700, 10, 10)


def test_collections_of_a_build_are_counted() -> None:
    """One to three, where Python's own thresholds make a hundred."""
    begun: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            begun.append(info["generation"])

    model = chain(120).SerializeToString()
    gc.set_threshold(700, 10, 10)
    gc.callbacks.append(note)
    try:
        mlirt.compile(model, target="cuda", heuristic=True)
    finally:
        gc.callbacks.remove(note)
    assert len(begun) < 20
