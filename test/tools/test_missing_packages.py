"""A machine that only runs engines has NumPy and llvmlite: what needs more says so in one line."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tiny_plan import tiny_parts

from mlirt import command_line
from mlirt.runtime.plan_file import write_plan

# Finders are asked before folders: these packages are not there for the process.
_HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("xdsl", "onnx", "numba", "ml_dtypes", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def without_compiler(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _HIDE + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    parts = tiny_parts()
    write_plan(tmp_path / "tiny.plan", parts.manifest, parts.sections, parts.weights)
    return tmp_path / "tiny.plan"


@pytest.mark.parametrize("name", ["compile", "calibrate", "refit", "Builder", "OnnxParser", "Refitter"])
def test_names_of_the_compiler(name: str) -> None:
    done = without_compiler(
        f"import mlirt\ntry:\n    mlirt.{name}\n"
        "except mlirt.MissingPackageError as error:\n    print(error, error.name)"
    )
    assert done.stdout.startswith(f"mlirt.{name} needs the package xdsl, which is not installed here: `pip install"), (
        done.stderr
    )
    assert done.stdout.split()[-1].startswith("xdsl")


def test_the_allocator_of_pytorch_has_a_page_without_it() -> None:
    """The reference lists every public name, on machines without PyTorch, too; making one says what is missing."""
    script = """
import sys
sys.modules["torch"] = None
import mlirt
assert mlirt.TorchAllocator.__doc__
try:
    mlirt.TorchAllocator()
except mlirt.MissingPackageError as error:
    print(error, error.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.startswith("mlirt.TorchAllocator needs PyTorch, which is not installed here"), done.stderr
    assert done.stdout.split()[-1] == "torch"


@pytest.mark.parametrize("command", ["rt_opt", "rt_translate"])
def test_tools_of_the_compiler(command: str) -> None:
    done = without_compiler(f"from mlirt.command_line import {command}\nsys.exit({command}())")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{command.replace('_', '-')}: error: {command.replace('_', '-')} needs the package")
    assert done.stderr.count("\n") == 1


def test_the_report_needs_no_compiler(plan: Path) -> None:
    page = plan.with_suffix(".html")
    run = "from mlirt.command_line import rt_report\nsys.argv = ['rt-report', {!r}, '-o', {!r}]\nsys.exit(rt_report())"
    assert without_compiler(run.format(str(plan), str(page))).returncode == 0
    assert "</html>" in page.read_text(encoding="utf-8")
    plan.write_bytes(plan.read_bytes()[:-1])
    done = without_compiler(run.format(str(plan), str(page)))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{plan}: error: " in done.stderr
    assert "damaged plan file" in done.stderr


def test_every_command_is_in_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for command, place in project["scripts"].items():
        assert place == f"mlirt.command_line:{command.replace('-', '_')}"
        assert callable(getattr(command_line, command.replace("-", "_")))


def test_rt_exec_runs_plans_alone(plan: Path) -> None:
    flags = "'--iterations=1', '--duration=0', '--warmUp=0'"
    run = f"from mlirt.command_line import rt_exec\nsys.argv = ['rt-exec', {{!r}}, {flags}]\nsys.exit(rt_exec())"
    done = without_compiler(run.format(f"--loadEngine={plan}"))
    assert done.returncode == 0, done.stdout
    plan.with_suffix(".onnx").write_bytes(b"model")
    done = without_compiler(run.format(f"--onnx={plan.with_suffix('.onnx')}"))
    assert done.returncode == 1
    assert "needs the package" in done.stdout + done.stderr
    assert "internal error" not in done.stdout + done.stderr
