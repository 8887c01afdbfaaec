"""Tools start fast because they import little: nothing heavy is loaded for what does not need it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_HEAVY = ("numpy", "onnx", "numba", "onnxruntime", "llvmlite", "safetensors", "ml_dtypes", "mlirt.builder")

_TEN_OPS = "\n".join(
    [
        "func.func @main(%y0: tensor<2xf32>) -> tensor<2xf32> {",
        *(f"%y{i + 1} = trt.activation relu %y{i} : (tensor<2xf32>) -> tensor<2xf32>" for i in range(8)),
        "func.return %y8 : tensor<2xf32>",
        "}",
    ]
)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "ten_ops.mlir"
    path.write_text(_TEN_OPS, encoding="utf-8")
    return path


def test_nothing_heavy_is_imported(network: Path) -> None:
    script = (
        "import sys; from mlirt.tools.rt_opt import main; code = main([sys.argv[1], '-p', 'canonicalize,dce']);"
        f"print([name for name in {_HEAVY!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(network)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


_PLUGIN = """\
from dataclasses import dataclass

from xdsl.passes import ModulePass

from mlirt.dialects.trt.activation import ActivationOp


@dataclass(frozen=True)
class CountReluPass(ModulePass):
    name = "count-relu"

    def apply(self, ctx, op):
        assert len([inner for inner in op.walk() if isinstance(inner, ActivationOp)]) == 8
"""
_FOR_MISTAKES = ("difflib", "secrets", "fractions", "decimal", "mlirt.tools.expected_diagnostics")
_NOT_NEEDED = (*_FOR_MISTAKES, "tomllib", "datetime", "json")
"""What a run has no use for that makes no mistake and names no device."""
_MAX_MODULES = {"mlirt": 137, "xdsl": 65, "": 335}
"""How many modules rt-opt has loaded at its end, with a plugin of one pass: 123 of ours, 57 of xDSL, 315 in all."""


def test_with_a_plugin_few_modules_are_imported(network: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "count_relu.py"
    plugin.write_text(_PLUGIN, encoding="utf-8")
    arguments = [str(network), f"--load-pass-plugin={plugin}", "-p", "count-relu"]
    script = (
        "import sys; from mlirt.tools.rt_opt import main; code = main(sys.argv[1:]);"
        "print('\\n'.join(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.split()
    assert "mlirt.tools.rt_opt" in loaded
    assert sorted({*_HEAVY, *_NOT_NEEDED}.intersection(loaded)) == []
    for package, most in _MAX_MODULES.items():
        count = sum(name == package or name.startswith(f"{package}.") or not package for name in loaded)
        assert count <= most, f"{count} modules of {package or 'all packages'} are loaded, expected at most {most}"


_RULES = """\
from dataclasses import dataclass

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.passes.rules import Rule, RulePass, binary, layer, near, number, value

x = value("x")


@dataclass(frozen=True)
class DropThreesPass(RulePass):
    name = "drop-threes"
    rules = (
        Rule(binary("sum", x, number(3)), layer(ActivationOp, x, kind="relu")),
        Rule(binary("prod", x, number(near(3))), layer(ActivationOp, x, kind="relu")),
    )
"""
_SUM = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = trt.constant {value = dense<3.0> : tensor<4xf32>} : tensor<4xf32>
  %a = trt.elementwise sum %x, %three : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = trt.elementwise prod %a, %three : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


def test_rules_about_numbers_import_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "threes.py").write_text(_RULES, encoding="utf-8")
    (tmp_path / "sum.mlir").write_text(_SUM, encoding="utf-8")
    script = (
        "import sys; from mlirt.tools.rt_opt import main; code = main(sys.argv[1:]);"
        f"print([name for name in {_HEAVY!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    arguments = ["sum.mlir", "--load-pass-plugin=threes.py", "-p", "drop-threes,canonicalize"]
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
    assert done.stdout.count("relu") == 1  # of two one is left


_BUILD = """
import sys

import mlirt

engine = mlirt.compile(sys.argv[1], "cpu")
print(engine.outputs[0].shape, sorted({"xdsl", "onnx"}.intersection(sys.modules)))
"""


def test_a_model_that_was_built_before_needs_no_compiler(tmp_path: Path) -> None:
    """Its plan is found by the model's bytes; xDSL, the dialects and ONNX are most of what a build imports."""
    model = tmp_path / "small.onnx"
    subprocess.run([sys.executable, "examples/small_network.py", str(model)], cwd=_ROOT, check=True)
    environment = os.environ | {"MLIRT_CACHE": str(tmp_path / "cache"), "MLIRT_PLAN_CACHE_MB": "100"}
    command = [sys.executable, "-c", _BUILD, str(model)]
    outputs = [subprocess.check_output(command, env=environment, text=True).rstrip() for _ in range(2)]
    assert outputs[0].endswith(" ['onnx', 'xdsl']")
    assert outputs[1] == outputs[0].removesuffix("['onnx', 'xdsl']") + "[]"


def test_start_up_time_is_reported(network: Path, record_property: Callable[[str, object], None]) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "mlirt.tools.rt_opt", str(network)], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    record_property("rt_opt_start_up_cpu_seconds", seconds)
    print(f"rt-opt on a 10-op file: {seconds:.2f} s CPU (budget 0.7 s)")
