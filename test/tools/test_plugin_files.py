"""The tools run the files that --plugins names, and say in a line which of them is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx_models import model_of, write_model
from tiny_plan import tiny_parts

from mlirt.runtime.plan_file import write_plan
from mlirt.tensorrt.plugins.registry import get_plugin_registry
from mlirt.tools import rt_exec, rt_opt, rt_report

TWICE = """\
import mlirt as trt
from {factor} import FACTOR


class Twice(trt.IPluginV2DynamicExt):
    plugin_type, plugin_version, num_outputs = "Twice", "1", 1

    def get_output_dimensions(self, output_index, inputs, expr_builder):
        return inputs[0]

    def supports_format_combination(self, pos, in_out, num_inputs):
        return True

    def serialize(self):
        return bytes([FACTOR])

    def clone(self):
        return Twice()


class TwiceCreator(trt.IPluginCreator):
    name = "Twice"

    def create_plugin(self, name, fields):
        return Twice()


trt.get_plugin_registry().register_creator(TwiceCreator(), "")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With plans, models and files of plugins; what they change in the process is taken back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry, modules = get_plugin_registry(), set(sys.modules)
    before = registry.all_creators
    parts = tiny_parts()
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    node = onnx.helper.make_node("Twice", ["x"], ["y"], name="twice")
    write_model(model_of([node], {"x": ("float32", [3])}, ["y"], {}), tmp_path / "a.onnx")
    Path("twice_factor.py").write_text("FACTOR = 2\n")
    Path("twice.py").write_text(TWICE.format(factor="twice_factor"))
    Path("nothing.py").write_text("")
    Path("broken.py").write_text("a = 1\n\nb = a / 0\n")
    Path("leaves.py").write_text("raise SystemExit(3)\n")
    Path("unread.py").write_text("def (:\n")
    yield tmp_path
    for creator in registry.all_creators:
        if creator not in before:
            registry.deregister_creator(creator)
    for name in set(sys.modules) - modules:
        if name in ("twice", "twice_factor", "nothing"):
            del sys.modules[name]


@pytest.mark.usefixtures("folder")
def test_a_model_with_a_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main(["a.onnx"]) == 1
    assert "could not find Plugin Twice" in capsys.readouterr().err
    assert rt_opt.main(["a.onnx", "--plugins=twice.py", "--plugins=twice.py"]) == 0
    out, err = capsys.readouterr()
    assert 'plugin = "Twice"' in out
    assert not err


@pytest.mark.usefixtures("folder")
def test_a_file_that_registers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_report.main(["a.plan", "-o", "a.html", "--plugins=nothing.py", "--plugins=twice.py"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: --plugins=nothing.py registers no creator")
    assert err.count("\n") == 1
    assert rt_exec.main(["--loadEngine=a.plan", "--plugins=nothing.py", "--buildOnly"]) == 0
    assert "[W] --plugins=nothing.py registers no creator" in "".join(capsys.readouterr())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("broken.py", "line 3: ZeroDivisionError: division by zero"),
        ("leaves.py", "line 1: SystemExit: 3"),
        ("unread.py", "SyntaxError: "),
        ("nowhere.py", "there is no such file"),
        (".", "that is a folder"),
        ("libtwice.so", "plugins are Python classes"),
    ],
)
def test_files_that_cannot_be_run(file: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    flag = f"--plugins={file}"
    assert rt_opt.main(["a.onnx", flag]) == 1
    err = capsys.readouterr().err
    assert f"{flag}: {message}" in err
    assert err.count("\n") == 1
    assert rt_exec.main(["--loadEngine=a.plan", "--buildOnly", flag]) == 1
    assert f"{flag}: {message}" in capsys.readouterr().err
    assert rt_report.main(["a.plan", "-o", "a.html", flag]) == 1
    assert f"{flag}: {message}" in capsys.readouterr().err
