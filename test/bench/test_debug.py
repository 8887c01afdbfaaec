"""bench/debug.py in small: rt-debug finds each kind of planted fault, and brings the network to five ops at most."""

from __future__ import annotations

from pathlib import Path

import debug
import pytest
from debug_networks import NETWORKS, recurrent
from growth_networks import chain


@pytest.mark.parametrize("kind", ["rewrite", "fusion", "tactic"])
def test_planted_faults_are_found(kind: str, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(chain(9).SerializeToString(deterministic=True))
    found = debug.outcome(tmp_path, kind)
    assert found.problems == ()
    assert found.bisected.finding
    assert found.ops <= debug.MAX_OPS


def test_what_is_not_found_is_told() -> None:
    missed = debug.Done(0, ["nothing is wrong within the bound"], 0.0, 0.0)
    elsewhere = debug.Done(1, ["guilty: pass number 3: cse (1 off)", "  at conv1"], 0.0, 0.0)
    fault = debug.wrong_rewrite("conv1", "trt.convolution")
    assert not debug.is_found(missed, fault, "conv1")
    assert not debug.is_found(elsewhere, fault, "conv1")
    named = debug.Done(1, ["guilty: pass number 3: planted (1 off)", "  at conv1"], 0.0, 0.0)
    assert debug.is_found(named, fault, "conv1")
    assert not debug.is_found(named, fault, "conv2")


def test_there_are_ten_networks_of_tens_to_hundreds_of_nodes() -> None:
    assert len(NETWORKS) == 10
    assert len(recurrent(12).graph.node) == 48
    assert len({len(NETWORKS[name]().graph.node) for name in ("chain", "transformer", "hourglass")}) == 3
