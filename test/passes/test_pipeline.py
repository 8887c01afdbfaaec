"""Running passes: what is checked, who is blamed, and what a failure leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.context import RtContext
from mlirt.dialects.diagnostics import VerificationError
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.errors import InvalidInputError, OutOfMemoryError, UnsupportedError
from mlirt.passes import pipeline
from mlirt.passes.phases import PHASES, Phase, TargetMachine, find_phase, phase_names, pipeline_for, specs_of
from mlirt.passes.pipeline import PassError, PipelineOptions, run_passes, run_phases
from mlirt.tools.input_files import new_context
from mlirt.tools.rt_opt import main

TEXT = """
func.func @main(%x: f32) -> f32 {
  %a = arith.negf %x : f32
  %b = arith.negf %a : f32
  func.return %b : f32
}
"""


@dataclass(frozen=True)
class NothingPass(ModulePass):
    name = "nothing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class RaisePass(ModulePass):
    name = "raise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("lost")


@dataclass(frozen=True)
class RefusePass(ModulePass):
    name = "refuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise UnsupportedError("layer conv1: no such thing yet")


@dataclass(frozen=True)
class FillMemoryPass(ModulePass):
    name = "fill-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise MemoryError("Unable to allocate 4.00 TiB")


@dataclass(frozen=True)
class BreakOrderPass(ModulePass):
    name = "break-order"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        first, second = (inner for inner in op.walk() if isinstance(inner, arith.NegfOp))
        block = first.parent
        assert block is not None
        second.detach()
        block.insert_op_before(second, first)


@dataclass(frozen=True)
class DropUnusedPass(ModulePass):
    name = "drop-unused"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.NegfOp) and not list(inner.result.uses):
                inner.detach()
                inner.erase()


@pytest.fixture
def module() -> ModuleOp:
    return parse_source(new_context(), TEXT, "network.mlir")[0]


@pytest.fixture
def ctx() -> RtContext:
    return new_context()


def test_a_crash_names_the_pass_and_leaves_a_reproducer(module: ModuleOp, ctx: RtContext, tmp_path: Path) -> None:
    with pytest.raises(PassError, match=r"pass raise: KeyError: 'lost'; reproducer: .*raise\.mlir") as caught:
        run_passes(module, ctx, [NothingPass(), RaisePass()], PipelineOptions(reproducer_folder=tmp_path))
    assert caught.value.reproducer == tmp_path / "raise.mlir"
    text = (tmp_path / "raise.mlir").read_text(encoding="utf-8")
    assert text.startswith("// RUN: rt-opt %s -p 'raise'\n// error: KeyError: 'lost'\n")
    assert "arith.negf" in text
    assert "builtin.module" not in str(caught.value), "an error never holds the IR"


def test_the_pass_that_broke_the_ir_is_blamed_not_the_last(module: ModuleOp, ctx: RtContext, tmp_path: Path) -> None:
    options = PipelineOptions(reproducer_folder=tmp_path)
    with pytest.raises(PassError, match=r"pass break-order: 'arith\.negf' op operand #0") as caught:
        run_passes(module, ctx, [NothingPass(), BreakOrderPass(), NothingPass()], options)
    assert caught.value.op is not None
    again, _ = parse_source(new_context(), (tmp_path / "break-order.mlir").read_text(encoding="utf-8"), "again")
    run_passes(again, ctx, [NothingPass()])  # the reproducer holds the IR before the failure, which is right


def test_a_failure_of_a_later_phase_is_traced_from_the_start(
    ctx: RtContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEXT.replace("  func.return", "  %unused = arith.negf %b : f32\n  func.return")
    module, _ = parse_source(ctx, text, "network.mlir")
    cleanup, last = PHASES[1], (NothingPass(), BreakOrderPass(), NothingPass())
    stretches = {"early": (DropUnusedPass(),), "late": last}

    def phases(*_: object) -> list[tuple[Phase, tuple[str, ...]]]:
        return [(cleanup, (name,)) for name in stretches]

    monkeypatch.setattr(pipeline, "pipeline_for", phases)
    monkeypatch.setattr(pipeline, "parse_pipeline", stretches.__getitem__)
    with pytest.raises(PassError, match="pass break-order"):
        run_phases(module, ctx, options=PipelineOptions(reproducer_folder=tmp_path))
    left = (tmp_path / "break-order.mlir").read_text(encoding="utf-8")
    assert "%unused" not in left  # the pass of the first phase has run
    assert left.index("%a = ") < left.index("%b = ")  # and the one that breaks the order has not
    run_passes(parse_source(new_context(), left, "again")[0], ctx, [NothingPass()])


def test_a_network_is_copied_once_for_all_phases(ctx: RtContext, monkeypatch: pytest.MonkeyPatch) -> None:
    network = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}"
    module, _ = parse_source(ctx, network, "network.mlir")
    copies: list[ModuleOp] = []
    clone = module.clone

    def counted() -> ModuleOp:
        copies.append(clone())
        return copies[-1]

    monkeypatch.setattr(module, "clone", counted)
    run_phases(module, ctx)
    assert len(copies) == 1


def test_verify_each_stops_at_once(module: ModuleOp, ctx: RtContext, tmp_path: Path) -> None:
    options = PipelineOptions(verify_each=True, reproducer_folder=tmp_path)
    with pytest.raises(PassError, match="pass break-order"):
        run_passes(module, ctx, [BreakOrderPass(), NothingPass()], options)
    assert [time.pass_name for time in options.times] == ["break-order"]


def test_what_the_network_does_wrong_is_no_failure_of_the_pass(
    module: ModuleOp, ctx: RtContext, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match=r"^layer conv1: no such thing yet$"):
        run_passes(module, ctx, [RefusePass()], PipelineOptions(reproducer_folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_network_that_no_memory_holds_leaves_nothing_to_reproduce(
    module: ModuleOp, ctx: RtContext, tmp_path: Path
) -> None:
    expected = "pass fill-memory: there is too little memory for this network: Unable to allocate 4.00 TiB$"
    with pytest.raises(OutOfMemoryError, match=expected):
        run_passes(module, ctx, [FillMemoryPass()], PipelineOptions(reproducer_folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_broken_input_is_not_blamed_on_a_pass(module: ModuleOp, ctx: RtContext) -> None:
    BreakOrderPass().apply(ctx, module)
    with pytest.raises(VerificationError, match="does not dominate"):
        run_passes(module, ctx, [NothingPass()])


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("{\n  cf.br ^bb1\n^bb1:\n  func.return %x : f32\n}", "has 2 blocks: write branches and loops with scf"),
        ("", "has no body"),
    ],
)
def test_functions_that_are_not_one_block_are_no_failure_of_the_pass(
    body: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.mlir"
    parameter, visibility = ("%x: f32", "") if body else ("f32", "private ")
    path.write_text(f"func.func {visibility}@main({parameter}) -> f32 {body}\n", encoding="utf-8")
    assert main([str(path), "-p", "name-dimensions"]) == 1
    error = f"{path}:1:1: error: 'func.func' op {fault}; pass name-dimensions needs functions of one block\n"
    assert capsys.readouterr().err == error


def test_a_reproducer_reproduces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "network.mlir"
    source.write_text(TEXT, encoding="utf-8")
    assert main([str(source), "-p", "cse,verify-legality{phase=import}"]) == 1
    message = capsys.readouterr().err.strip()
    assert message.startswith(f"{source}:3:3: error: pass verify-legality: 'arith.negf' op is left after phase import")
    reproducer = message.rpartition("reproducer: ")[2]
    assert main([reproducer, "-p", "verify-legality{phase=import}"]) == 1
    assert "'arith.negf' op is left after phase import" in capsys.readouterr().err


def test_a_reproducer_has_small_weights_beside_it_and_leaves_out_large_ones(ctx: RtContext, tmp_path: Path) -> None:
    for size, kept in ((1024, True), (8 << 20, False)):
        weights = ConstantOp.from_array(np.zeros(size, np.float32), ctx.weights, f"w{size}")
        folder = tmp_path / str(size)
        with pytest.raises(PassError):
            run_passes(ModuleOp([weights]), ctx, [RaisePass()], PipelineOptions(reproducer_folder=folder))
        assert (folder / "raise.safetensors").exists() == kept
        assert main([str(folder / "raise.mlir")]) == 0


def test_phases_are_slices_of_one_pipeline() -> None:
    assert [phase.name for phase, _ in pipeline_for("cpu")] == list(phase_names())
    some = pipeline_for("cuda", first="cleanup", last="quantization")
    assert [phase.name for phase, _ in some] == ["cleanup", "quantization"]
    with pytest.raises(InvalidInputError, match="phase fusion comes after phase cleanup"):
        pipeline_for("cpu", first="fusion", last="cleanup")
    with pytest.raises(InvalidInputError, match="there is no phase 'fussion'"):
        find_phase("fussion")


def test_every_border_is_checked() -> None:
    for target in ("cpu", "cuda"):
        for phase, specs in pipeline_for(target):
            assert specs[-1] == f"verify-legality{{phase={phase.name}}}"
            assert not [spec for spec in specs if "{target}" in spec]


def test_kernels_are_made_for_the_vectors_and_threads_of_a_machine() -> None:
    text = ",".join(specs_of(find_phase("lowering"), "cpu", machine=TargetMachine(vector_bits=256, threads=12)))
    assert "convert-fused-to-kernel{target=cpu vector_bits=256 threads=12}" in text


def test_every_step_gives_its_reason() -> None:
    assert all(len(step.reason) > 20 for phase in PHASES for step in phase.steps)


def test_phases_are_dumped(ctx: RtContext, tmp_path: Path) -> None:
    network = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}"
    module, _ = parse_source(ctx, network, "network.mlir")
    run_phases(module, ctx, last="cleanup", options=PipelineOptions(dump_folder=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00-import.mlir", "01-cleanup.mlir"]
    assert (tmp_path / "01-cleanup.mlir").read_text(encoding="utf-8").startswith("// phase cleanup: ")
