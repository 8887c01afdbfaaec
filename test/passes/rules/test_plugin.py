"""A pass of a user is a short file: what a pattern of three layers and two rules take."""

from __future__ import annotations

from pathlib import Path

PLUGIN = Path(__file__).parent / "hard_swish_plugin.py"


def test_a_pass_of_rules_has_at_most_25_lines() -> None:
    assert len(PLUGIN.read_text(encoding="utf-8").splitlines()) <= 25
