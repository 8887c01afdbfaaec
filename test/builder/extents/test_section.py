"""What is made once for a plan is not made once for each launch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from growth_networks import KINDS

import mlirt
from mlirt.builder.build import build_plan
from mlirt.builder.extents import section
from mlirt.builder.model_network import imported
from mlirt.dialects.context import RtContext
from mlirt.runtime.manifest import Manifest


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


@pytest.mark.parametrize("nodes", [12, 48])
def test_which_launches_a_host_makes_is_not_asked_for_each_launch(monkeypatch: pytest.MonkeyPatch, nodes: int) -> None:
    reads: list[int] = []
    plain = Manifest.hosted.fget
    assert plain is not None

    def counted(manifest: Manifest) -> frozenset[int]:
        reads.append(len(manifest.launches))
        return plain(manifest)

    monkeypatch.setattr(Manifest, "hosted", property(counted))
    ctx = RtContext()
    build_plan(imported(KINDS["chain"](nodes), ctx, {}, {}, None), ctx, "cpu")
    assert len(reads) <= 4
