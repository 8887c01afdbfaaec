"""IR says by itself, and a dump by its head, which phases it still has to go through."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from mlirt.errors import InvalidInputError
from mlirt.passes.phases import phase_names
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.passes.starting_phase import check_target, phase_of_dump, starting_phase, target_of_dump
from mlirt.tools.input_files import InputFile, load_text, new_context

NETWORK = """
func.func @main(%x: tensor<1x4x6x6xf32>) -> tensor<1x4x4x4xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<4x4x3x3xf32>} : tensor<4x4x3x3xf32>
  %c = trt.convolution %x, %w : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  %y = trt.activation relu %c : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  func.return %y : tensor<1x4x4x4xf32>
}
"""


def read(text: str) -> ModuleOp:
    return load_text(new_context(), text, InputFile("a.mlir"))[0]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("dumps")
    ctx = new_context()
    module, _ = load_text(ctx, NETWORK, InputFile("a.mlir"))
    run_phases(module, ctx, options=PipelineOptions("cpu", dump_folder=folder))
    return {file.stem[3:]: file.read_text(encoding="utf-8") for file in Path(folder).glob("*.mlir")}


@pytest.mark.parametrize("phase", phase_names())
def test_a_dump_goes_on_behind_its_phase(dumps: dict[str, str], phase: str) -> None:
    text, names = dumps[phase], phase_names()
    assert phase_of_dump(text) == phase
    assert target_of_dump(text) == "cpu"
    assert starting_phase(read(text), text) == names[min(names.index(phase) + 1, len(names) - 1)]


@pytest.mark.parametrize(
    ("phase", "starts"),
    [
        ("import", "cleanup"),
        ("cleanup", "cleanup"),
        ("quantization", "cleanup"),
        ("fusion", "layout"),
        ("layout", "lowering"),
        ("lowering", "memory"),
        ("memory", "memory"),
    ],
)
def test_without_a_head_the_dialects_tell(dumps: dict[str, str], phase: str, starts: str) -> None:
    assert starting_phase(read(dumps[phase])) == starts


def test_a_head_that_lies_is_not_believed(dumps: dict[str, str]) -> None:
    head = dumps["fusion"].split("builtin.module")[0]
    assert starting_phase(read(NETWORK), head + NETWORK) == "cleanup"
    assert starting_phase(read(NETWORK), "// phase nowhere: x\n" + NETWORK) == "cleanup"


def test_layers_beside_launches_start_at_fusion() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %a = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<4xf32>) -> tensor<4xf32> {
      ^bb0(%e: f32):
        fused.yield %e : f32
      }
      %y = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    """
    assert starting_phase(read(text)) == "fusion"


def test_layouts_and_kernels_belong_to_their_target(dumps: dict[str, str]) -> None:
    check_target(dumps["fusion"], "fusion", "cuda")
    check_target(dumps["layout"], "lowering", "cpu")
    with pytest.raises(InvalidInputError, match="made for cpu, and cannot be built for cuda from lowering on"):
        check_target(dumps["layout"], "lowering", "cuda")
