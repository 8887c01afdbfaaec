"""A pass for launches says that it has nothing to do on layers."""

from __future__ import annotations

import pytest

from mlirt.passes import registry
from mlirt.passes.pass_levels import LevelWarnings, levels, unsuitable
from mlirt.passes.phases import PHASES
from mlirt.passes.pipeline import PipelineOptions, run_passes, run_phases
from mlirt.tools.input_files import InputFile, load_text, new_context

LAYERS = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
EMPTY = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  func.return %x : tensor<4xf32>\n}\n"


@pytest.mark.parametrize(
    ("text", "passes", "told"),
    [
        (LAYERS, "fuse-pointwise", ["fuse-pointwise works on fused ops, but the IR holds trt ops: run convert"]),
        (LAYERS, "fuse-pointwise,fuse-pointwise,sink-views", ["fuse-pointwise works", "sink-views works"]),
        (LAYERS, "convert-trt-to-fused,fuse-pointwise", []),
        (LAYERS, "convert-trt-to-fused,plan-memory", ["plan-memory works on kernel ops, but the IR holds fused ops"]),
        (LAYERS, "canonicalize,cse,dce", []),
        (EMPTY, "fuse-pointwise,plan-memory", []),
    ],
)
def test_warnings(text: str, passes: str, told: list[str]) -> None:
    ctx = new_context()
    module, _ = load_text(ctx, text, InputFile("a.mlir"))
    said: list[str] = []
    run_passes(module, ctx, passes, PipelineOptions(instruments=[LevelWarnings(said.append)]))
    assert len(said) == len(told)
    for line, start in zip(said, told, strict=True):
        assert line.startswith(f"pass {start}")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_the_compilers_own_pipeline_is_not_warned_of(target: str) -> None:
    ctx = new_context()
    module, _ = load_text(ctx, LAYERS, InputFile("a.mlir"))
    said: list[str] = []
    run_phases(module, ctx, options=PipelineOptions(target, instruments=[LevelWarnings(said.append)]))
    assert said == []


def test_levels_are_those_of_the_pipeline() -> None:
    assert levels()["fuse-attention"] == "fused"
    assert levels()["plan-memory"] == "kernel"
    assert levels()["infer-nesting"] == "trt"
    assert "cse" not in levels()
    assert set(levels()) <= {step.pass_name for phase in PHASES for step in phase.steps}
    ctx = new_context()
    module, _ = load_text(ctx, LAYERS, InputFile("a.mlir"))
    assert unsuitable(registry.load("cse")(), module) is None
