"""The estimates of tactics lead to what is fast: checked against times that were measured on a GPU."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from lowered_network import parse_module

from mlirt.builder.host import cuda_target
from mlirt.builder.tactics.sites import find_sites

# Made by bench/tactic_times.py on an H200.
_MEASURED = Path(__file__).with_name("measured_tactics.json")
_CLOSE = 1.25


@cache
def slowdowns() -> list[tuple[float, str]]:
    """How many times longer than the fastest tactic the one that is estimated best takes, for each layer."""
    found: list[tuple[float, str]] = []
    for row in json.loads(_MEASURED.read_text(encoding="utf-8")):
        module, context = parse_module(row["network"])
        times: dict[str, float] = row["microseconds"]
        (site,) = find_sites(module, context, cuda_target())
        chosen = next((one.name for one in site.candidates if one.name in times), None)
        if chosen is not None:
            found.append((times[chosen] / min(times.values()), f"{site.ops[0].name} {chosen}"))
    return found


def test_there_are_measurements() -> None:
    assert len(slowdowns()) > 50


def test_most_estimates_lead_close_to_the_fastest() -> None:
    close = sum(slowdown <= _CLOSE for slowdown, _ in slowdowns())
    assert close > len(slowdowns()) * 2 / 3


def test_half_of_the_layers_lose_next_to_nothing() -> None:
    assert median(slowdown for slowdown, _ in slowdowns()) < 1.1


@pytest.mark.parametrize("limit", [4.0])
def test_no_layer_is_hopeless(limit: float) -> None:
    hopeless = [where for slowdown, where in slowdowns() if slowdown > limit]
    assert len(hopeless) <= len(slowdowns()) / 20, hopeless
