"""What the commands say to programs and pipes: JSON, nothing but warnings, a reader that has gone, completion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from example_network import example_network

from mlirt.tools import rt_debug, rt_exec

TOOLS = ("opt", "translate", "exec", "report", "debug", "replay", "update-checks", "lab", "serve")
FAST = ("--duration=0", "--warmUp=0", "--iterations=3", "--shapes=image:1x3x8x8")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "small.onnx").write_bytes(example_network().SerializeToString())
    path = folder / "small.plan"
    assert rt_exec.main([f"--onnx={folder / 'small.onnx'}", f"--saveEngine={path}", "--target=cpu", "--buildOnly"]) == 0
    return path


def test_json_is_all_that_is_on_standard_output(plan: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert rt_exec.main([f"--loadEngine={plan}", *FAST, "--dumpProfile", "--json"]) == 0
    out, err = capfd.readouterr()
    found = json.loads(out)
    assert found["outcome"] == "passed"
    assert found["engine"]["inputs"] == [{"name": "image", "dtype": "float32", "shape": ["n", 3, 8, 8]}]
    assert found["performance"]["runs"] == 3
    assert found["profile"][0] == {"count": 3}
    assert "errors" not in found
    assert "&&&& PASSED" in err
    assert "Throughput" in err


def test_json_of_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert rt_exec.main([f"--loadEngine={tmp_path / 'none.plan'}", "--json"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert found["outcome"] == "failed"
    assert "none.plan" in found["errors"][0]


def test_a_file_that_is_no_plan_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.plan"
    path.write_bytes(b"something else")
    assert rt_exec.main([f"--loadEngine={path}"]) == 1
    assert f"{path}: this is no mlirt plan file" in capfd.readouterr().err


def test_quiet_leaves_warnings(plan: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert rt_exec.main([f"--loadEngine={plan}", *FAST, "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    assert rt_exec.main([f"--loadEngine={plan}", *FAST[:3], "--quiet"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines
    assert all("[W]" in line for line in lines)
    assert rt_exec.main([f"--loadEngine={plan}", *FAST]) == 0
    assert "Throughput" in capfd.readouterr().out  # the next run is told as always


def test_compare_as_json(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(plan.with_suffix(".onnx"))
    assert rt_debug.main(["compare", model, "--with", "reference", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bound"] == 1e-3
    assert [one["layer"] for one in found["tensors"]] == ["scores"]
    assert rt_debug.main(["bisect", model, "--json"]) == 1
    assert "--json is a flag of compare" in capsys.readouterr().err


def test_quiet_leaves_the_result_of_a_search(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(plan.with_suffix(".onnx"))
    assert rt_debug.main(["bisect", model]) == 0
    assert capsys.readouterr().out.count("\n") > 1
    assert rt_debug.main(["bisect", model, "--quiet"]) == 0
    assert capsys.readouterr().out == "nothing is wrong within the bound\n"


def _command(tool: str, *flags: str) -> str:
    call = f"from mlirt.command_line import rt_{tool.replace('-', '_')} as run; import sys; sys.exit(run())"
    return " ".join(f"'{part}'" for part in (sys.executable, "-c", call, *flags))


@pytest.mark.parametrize("command", ["exec", "opt"])
def test_a_reader_that_goes_ends_a_tool_without_a_traceback(command: str, plan: Path) -> None:
    model = str(plan.with_suffix(".onnx"))
    flags = (f"--loadEngine={plan}", *FAST) if command == "exec" else (model, "--print-op-generic")
    line = f"{_command(command, *flags)} | head -n 1 > /dev/null; exit ${{PIPESTATUS[0]}}"
    for _ in range(3):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.returncode in (0, 1)  # 0 where all was written before the reader went


def test_a_closed_reader_is_exit_code_one(plan: Path) -> None:
    line = f"({_command('exec', f'--loadEngine={plan}', *FAST)}; echo $? >&2) | true"
    done = subprocess.run(["bash", "-c", f"sleep 0.1; {line}"], capture_output=True, text=True, check=False)
    assert done.stderr == "1\n"


@pytest.mark.parametrize("tool", TOOLS)
def test_bash_takes_the_script_of_completion(tool: str) -> None:
    pytest.importorskip("shtab", reason="the package shtab, which writes the scripts, is not installed")
    line = f"set -o pipefail; {_command(tool, '--print-completion', 'bash')} | tee /dev/stderr | bash -n"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--verbose" in done.stderr or tool in ("serve",)


def test_completion_without_its_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert rt_exec.main(["--print-completion=bash"]) == 1
    assert "pip install shtab" in capsys.readouterr().err
