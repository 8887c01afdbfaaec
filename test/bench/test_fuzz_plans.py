"""Changed plans with right digests: what `bench/fuzz_plans.py` does with thousands, here with a few."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import fuzz_plans
import pytest
from fuzz_plan_mutations import mutated, plan_of, sections_of
from fuzz_plans import in_child, outcome_of


@pytest.mark.parametrize(("network", "cases"), [("convolutions", 80), ("perceptron", 60), ("own_sizes", 60)])
def test_changed_plans_are_refused_or_stay_inside_of_their_buffers(network: str, cases: int) -> None:
    command = [sys.executable, str(Path(fuzz_plans.__file__)), "--cases", str(cases), "--only", network]
    done = subprocess.run([*command, "--guard", "end"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f" of {cases}" in done.stdout
    assert "refused at load" in done.stdout  # something was changed


def test_outcomes_of_processes() -> None:
    def killed() -> int:
        os.kill(os.getpid(), signal.SIGSEGV)
        return 0

    def endless() -> int:
        while True:
            pass

    assert outcome_of(in_child(killed, 10, 4)) == "crash"
    assert outcome_of(in_child(endless, 1, 4)) == "hang"
    assert outcome_of(in_child(lambda: 14, 10, 4)) == "raw"
    assert outcome_of(in_child(lambda: 13, 10, 4)) == "changed"


def test_changes_have_right_digests() -> None:
    bodies = {
        "manifest": b'{"a": [1, 2, 3], "b": {"c": "x"}}',
        "weights": b"\7" + bytes(7) + b'{"w":1}',
        "code.o": b"12345",
    }
    plan = plan_of(bodies)
    assert sections_of(plan) == bodies
    changed = {mutated(plan, random.Random(number))[1] for number in range(50)}
    assert len(changed) > 20
    assert plan not in changed or len(changed) > 1
