"""What is made once for a plan is not made once for each launch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from growth_networks import KINDS

import mlirt
from mlirt.builder.extents import section


def test_launches_that_no_run_comes_to_are_found_once_for_each_set_of_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    found: Callable[..., object] = getattr(section, "never_run")

    def counted(*arguments: object) -> object:
        calls.append(len(calls))
        return found(*arguments)

    monkeypatch.setattr(section, "never_run", counted)
    engine = mlirt.compile(KINDS["hourglass"](24), target="cpu")
    assert len(engine.layers) > 10
    assert len(calls) == 1  # its shapes are fixed
