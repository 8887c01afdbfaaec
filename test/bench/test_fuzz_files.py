"""Mutated models and texts: what bench/fuzz_models.py and bench/fuzz_texts.py do with thousands, here with some."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from fuzz_models import model_cases
from fuzz_texts import text_cases
from isolated_case import BAD, Case, Limits, run_cases, run_isolated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def test_models() -> None:
    assert run_cases(model_cases(9000, 60, 0), Limits()).is_good


def test_texts() -> None:
    assert run_cases(text_cases(9000, 60), Limits()).is_good


def _crash(_: bytes, tell: Callable[[str, str], None]) -> None:
    tell("silent", "here")
    os.abort()


def _hang(_: bytes, tell: Callable[[str, str], None]) -> None:
    while True:
        time.process_time()


def _raise(_: bytes, tell: Callable[[str, str], None]) -> None:
    raise KeyError("lost")


@pytest.mark.parametrize(("judge", "outcome"), [(_crash, "crash"), (_hang, "hang"), (_raise, "exception")])
def test_what_fails_is_seen(judge: Callable[[bytes, Callable[[str, str], None]], None], outcome: str) -> None:
    assert run_isolated(Case("case", b"", judge), Limits(seconds=0.5))[0] == outcome
    assert outcome in BAD
