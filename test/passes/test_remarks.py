"""Rules say what they did and why they declined, at no cost unless somebody listens."""

from __future__ import annotations

import json

import pytest

from mlirt.passes import registry
from mlirt.passes.pipeline import run_passes
from mlirt.passes.remarks import Remarks, applied, declined, missed, recorder, recording
from mlirt.tools.input_files import InputFile, load_text, new_context

ACTIVATION = """
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %w = trt.constant {value = dense<0.5> : tensor<8x8xf32>} : tensor<8x8xf32>
  %a = trt.matrix_multiply %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("first")
  %b = trt.activation relu %a : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("relu")
  %c = trt.matrix_multiply %b, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("second")
  %d = trt.activation tanh %c : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("tanh")
  func.return %c, %d : tensor<4x8xf32>, tensor<4x8xf32>
}
"""


def collected(text: str, passes: str, remarks: Remarks | None = None) -> Remarks:
    ctx = new_context()
    module, _ = load_text(ctx, text, InputFile("a.mlir"))
    found = remarks or Remarks()
    with recording(found):
        run_passes(module, ctx, passes)
    return found


def test_applied_and_declined() -> None:
    found = collected(ACTIVATION, "convert-trt-to-fused,fuse-convolution-activation")
    assert found.text().splitlines() == [
        "remark: fuse-convolution-activation: applied: first + relu (fused.matmul)",
        "remark: fuse-convolution-activation: declined: tanh (fused.pointwise): second has other readers",
    ]
    assert [one.layer for one in found.of("applied")] == ["first + relu"]
    assert found.of("missed") == []


def test_one_pass_alone() -> None:
    passes = "convert-trt-to-fused,fuse-pointwise,fuse-convolution-activation,fuse-attention"
    found = collected(ACTIVATION, passes, Remarks(passes=["fuse-attention"]))
    assert {one.pass_name for one in found.remarks} == {"fuse-attention"}


def test_statistics() -> None:
    passes = "convert-trt-to-fused,fuse-convolution-activation,cse,dce,dce"
    found = collected(ACTIVATION, passes, Remarks(statistics=True))
    counted = found.counts["fuse-convolution-activation"]
    assert (counted.runs, counted.applied, counted.declined, counted.missed) == (1, 1, 1, 0)
    assert counted.inserted > 0
    assert found.counts["dce"].runs == 2
    lines = found.statistics_text().splitlines()
    assert lines[0].split() == ["runs", "applied", "declined", "missed", "inserted", "erased", "pass"]
    assert lines[2].split()[:4] == ["1", "1", "1", "0"]
    records = json.loads(found.json())
    assert records["remarks"][0]["kind"] == "applied"
    assert records["statistics"]["dce"]["runs"] == 2


def test_nobody_listens() -> None:
    ctx = new_context()
    module, _ = load_text(ctx, ACTIVATION, InputFile("a.mlir"))
    assert recorder() is None
    for say in (applied, declined, missed):
        assert say(module, "{}") is None
    with recording(Remarks()) as _:
        declined(module, "no pass runs")
        found = recorder()
        assert found is not None
        assert found.remarks == []


def test_the_ir_is_the_same_with_remarks() -> None:
    texts: list[str] = []
    for remarks in (None, Remarks(statistics=True)):
        ctx = new_context()
        module, _ = load_text(ctx, ACTIVATION, InputFile("a.mlir"))
        with recording(remarks):
            run_passes(module, ctx, "convert-trt-to-fused,fuse-convolution-activation,fuse-pointwise")
        texts.append(str(module))
    assert texts[0] == texts[1]


TWO_READERS = """
func.func @main(%x: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %k = trt.constant {value = dense<0.5> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %two = trt.constant {value = dense<2.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %c = trt.convolution %x, %k : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv")
  %y = trt.elementwise prod %c, %two : (tensor<1x2x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x2x4x4xf32> loc("scale")
  func.return %c, %y : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
"""
NOT_CONSTANT = TWO_READERS.replace("prod %c, %two", "prod %c, %c").replace(
    "tensor<1x1x1x1xf32>) -> tensor<1x2x4x4xf32> loc", "tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc"
).replace("func.return %c, %y", "func.return %y, %y")
PADDED = """
func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x6x6xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %p = trt.padding %x {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 1, 1>, VALUE}
      : (tensor<1x2x4x4xf32>) -> tensor<1x2x6x6xf32> loc("pad")
  %c = trt.convolution %p, %k : (tensor<1x2x6x6xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x6x6xf32> loc("conv")
  func.return %c : tensor<1x2x6x6xf32>
}
"""
SIBLINGS = """
func.func @main(%x: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %k = trt.constant {value = dense<0.5> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %a = trt.convolution %x, %k : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("a")
  %b = trt.convolution %x, %k : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("b")
  func.return %a, %b : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
"""
CHAIN = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("exp")
  %b = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32> loc("neg")
  func.return %b : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "passes", "said"),
    [
        (TWO_READERS, "fold-scale-into-convolution", "declined: scale (trt.elementwise): conv has other readers"),
        (NOT_CONSTANT, "fold-scale-into-convolution", "declined: scale (trt.elementwise): it is no constant scale"),
        (PADDED.replace("VALUE", "mode = #trt<pad_mode reflect>"), "fuse-padding-convolution", "the padding repeats"),
        (SIBLINGS, "fuse-sibling-convolutions", "declined: a (trt.convolution): joining it with 1 others does not pay"),
        (SIBLINGS, "fuse-sibling-convolutions{min-work=0}", "applied: a + b (trt.convolution)"),
        (CHAIN, "convert-trt-to-fused,fuse-pointwise", "applied: exp + neg (fused.pointwise)"),
        (CHAIN, "convert-trt-to-fused,fuse-pointwise{max-ops=1}", "with exp it would have more than max-operands"),
        (CHAIN, "convert-trt-to-fused,fuse-convolution-elementwise", "missed: neg (fused.pointwise): it reads no"),
        (ACTIVATION, "convert-trt-to-fused,fuse-attention", "missed: second (fused.matmul): what stands"),
    ],
)
def test_reasons(text: str, passes: str, said: str) -> None:
    found = collected(text, passes).text()
    assert said in found, found


def test_a_remark_of_an_op_counts_once_in_a_run() -> None:
    found = collected(TWO_READERS, "fold-scale-into-convolution,fold-scale-into-convolution")
    assert len(found.of("declined")) == 2


def test_every_fusion_pass_says_what_it_did() -> None:
    fuse_nothing = {"convert-trt-to-fused", "eliminate-dead-layers", "convert-run-number-to-input"}
    paths = [path for path in registry.pass_paths() if path.parent.name == "fusion"]
    texts = {registry.name_of(path): path.read_text(encoding="utf-8") for path in paths}
    speaks = ("applied(", "(RulePass)", "Saturation(")
    silent = {name for name, text in texts.items() if not any(word in text for word in speaks)}
    assert silent == fuse_nothing, "a fusion pass says applied(op) where it has acted (mlirt/passes/remarks.py)"
