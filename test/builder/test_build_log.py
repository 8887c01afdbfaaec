"""The log `mlirt` tells what was built, and at DEBUG each step of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from example_network import example_network

import mlirt


def _lines(caplog: pytest.LogCaptureFixture, level: int, **settings: Any) -> list[str]:
    caplog.clear()
    with caplog.at_level(level, logger="mlirt"):
        mlirt.compile(example_network(), target="cpu", **settings)
    return [record.message for record in caplog.records if record.name == "mlirt"]


def test_one_line_of_a_build(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = _lines(caplog, logging.INFO)
    assert line.startswith("mlirt: small was built in ")
    assert "image float32[n, 3, 8, 8] -> scores float32[n, 10]" in line
    assert _lines(caplog, logging.WARNING) == []


def test_each_step_at_debug_beside_the_caller_s_progress(caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[str, int, int]] = []

    def progress(text: str, done: int, total: int) -> None:
        told.append((text, done, total))

    lines = _lines(caplog, logging.DEBUG, progress=progress)
    steps = [line for line in lines if line.startswith("mlirt: step ")]
    assert told
    assert steps == [f"mlirt: step {done} of {total}: {text}" for text, done, total in told]
    assert "was built in" in lines[-1]
