"""rt-debug repeat names the launch whose result differs from run to run, and the one whose kernel differs by build."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import onnx
import pytest

from mlirt.tools import rt_debug

# The last column of the results stays what memory held before.
UNWRITTEN = """\
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.tensor_types import dims

OPS, TARGETS, PRIORITY = (WindowOp,), frozenset({"cpu"}), 1000


def lower(op, lowering):
    shape = dims(op.results[0].type)
    k = lowering.kernel("unwritten")
    with k.parallel([*shape[:-2], 1, shape[-1]]) as place:
        k.store(k.load(op.input, [*place[:-2], k.constant(0), place[-1]]), op.results[0], place)
    k.finish(op)
    return True
"""
# Which way the sum goes is another one in each build.
RANDOM = """\
import itertools

from xdsl.dialects import arith

from mlirt.dialects.fused.window import WindowOp
from mlirt.kernels.window import generic

OPS, TARGETS, PRIORITY = (WindowOp,), frozenset({"cpu"}), 1000
builds = itertools.count()


def lower(op, lowering):
    if next(builds) % 2:
        block = op.epilogue.block
        zero = arith.SubfOp(block.args[0], block.args[0])
        more = arith.AddfOp(block.args[0], zero.result)
        block.insert_ops_before([zero, more], block.first_op)
        block.last_op.operands[0] = more.result
    return generic.lower(op, lowering)
"""
# A number that each build draws anew: kernels take it as an argument, so that all builds have the same ones.
DRAWN = """\
import itertools

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.kernels.matmul import generic

OPS, TARGETS, PRIORITY = (MatmulOp,), frozenset({"cpu"}), 1000
builds = itertools.count(1)


def lower(op, lowering):
    last = op.epilogue.block.last_op
    number = arith.ConstantOp(FloatAttr(1 + next(builds) / 1000, f32))
    product = arith.MulfOp(last.operands[0], number.result)
    op.epilogue.block.insert_ops_before([number, product], last)
    last.operands[0] = product.result
    return generic.lower(op, lowering)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("MLIRT_GUARD", raising=False)
    script = Path(__file__).parents[3] / "examples" / "small_network.py"
    onnx.save(runpy.run_path(str(script))["small_network"](), "small.onnx")  # pyright: ignore[reportUnknownMemberType]
    return tmp_path


def test_a_network_that_repeats_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_debug.main(["repeat", "small.onnx", "--runs=12"]) == 0
    assert capsys.readouterr().out.splitlines() == ["2 builds launch the same kernels", "12 runs give the same bits"]


def test_a_kernel_that_leaves_results_unwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tactic.py").write_text(UNWRITTEN, encoding="utf-8")
    assert rt_debug.main(["repeat", "small.onnx", "--runs=12", "--load-pass-plugin=tactic.py"]) == 1
    same, differs, guilty, layer = capsys.readouterr().out.splitlines()
    assert same == "2 builds launch the same kernels"
    assert differs.startswith("output scores: ")
    assert "different results in 12 runs" in differs
    assert guilty.startswith("guilty: kernel: fused.window (")
    assert layer == "  at pool"


def test_a_tactic_that_is_another_one_in_each_build(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tactic.py").write_text(RANDOM, encoding="utf-8")
    assert rt_debug.main(["repeat", "small.onnx", "--load-pass-plugin=tactic.py"]) == 1
    guilty, layer = capsys.readouterr().out.splitlines()
    assert guilty.startswith("guilty: tactic: window_")
    assert guilty.endswith(" in another")
    assert layer == "  at pool"


def test_a_number_that_is_another_one_in_each_build(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tactic.py").write_text(DRAWN, encoding="utf-8")
    assert rt_debug.main(["repeat", "small.onnx", "--runs=6", "--load-pass-plugin=tactic.py"]) == 1
    same, differs, guilty, layer = capsys.readouterr().out.splitlines()
    assert same == "2 builds launch the same kernels"
    assert differs.startswith("output scores: 2 different results in 6 runs, 0.00")
    assert guilty.startswith("guilty: kernel: fused.matmul (0.00")
    assert layer == "  at classify"


def test_a_wrong_number_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_debug.main(["repeat", "small.onnx", "--runs=0"]) == 1
    assert "expected a whole number from 1 on" in capsys.readouterr().err
