"""Builds in rotation use each tactic that is offered for each layer, and rows of them are counted by file."""

from __future__ import annotations

from pathlib import Path

from attending_network import attending_network
from tactic_rotation import Rotation, coverage

from mlirt.builder.host import cuda_target
from mlirt.builder.tactics.selection import Tuning, select_tactics, tactics_of
from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases


def test_every_tactic_of_every_layer_is_used(tmp_path: Path) -> None:
    model, _ = attending_network()
    context, target = RtContext(), cuda_target("fp16")
    network = import_model(model, context)
    Rotation.of(network, context, target, "fp16").save(tmp_path / "offered.json")
    rotation = Rotation.load(tmp_path / "offered.json")
    assert rotation.builds == max(map(len, rotation.offered)) > 2
    assert len([names for names in rotation.offered if names]) > 2
    run_phases(network, context, last="layout", options=PipelineOptions("cuda", "fp16"))
    used: list[list[str]] = []
    for number in range(rotation.builds):
        build = network.clone()
        select_tactics(build, context, target, Tuning(replay=rotation.tactics(number)), _silent)
        used.append(tactics_of(build))
    for place, names in enumerate(rotation.offered):
        assert {build[place] for build in used} == set(names or [""])
    rows = [{"verdict": "right", **rotation.record(number)} for number in range(rotation.builds)]
    assert all(", 0 of them in no build; " in line and ", 0 in builds" in line for line in coverage(rows))
    short = coverage(rows[:1])
    assert len(short) == len(coverage(rows)), "what is offered is listed, whether it was used or not"
    assert any(", 0 of them in no build; " not in line for line in short)


def _silent(text: str, done: int, total: int) -> None: ...


def test_wrong_builds_are_counted() -> None:
    rows = [
        {"verdict": "right", "offered": ["rows:1", "rows:2", "copy"], "used": ["rows:1", "copy"]},
        {"verdict": "wrong", "offered": ["rows:1", "rows:2", "copy"], "used": ["rows:2", "copy", "rows:2"]},
        {"verdict": "failed"},
    ]
    assert coverage(rows) == [
        "copy: 1 tactics, 0 of them in no build; 2 layers, 1 in builds that are not right",
        "rows: 2 tactics, 0 of them in no build; 3 layers, 2 in builds that are not right",
    ]
