"""Compiler processes import nothing of the folders around a model, and end with whoever asked them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupted_process import restore_interrupts
from onnx_models import one_node, write_model
from small_network import network

from mlirt.builder.compiler_process import CompilerProcess
from mlirt.builder.host import cpu_target
from mlirt.builder.numba_cpu import compile_kernels

_BIN = Path(sys.executable).parent
# What numba, llvmlite or NumPy import from Python's own library, and what they look for where it is installed.
_SHADOWS = ("html", "json", "select", "colorsys", "runpy", "struct", "scipy", "coverage", "usercustomize")
_SPOILER = """
import os
open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ran"), "a").write(__name__ + " ")
"""
_KERNEL = """
from mlirt.builder.numba_cpu_intrinsics import float32, float32_pointer

def fill(params, worker, workers):
    float32_pointer(params[0])[0] = float32(1)
"""
_COMPILE = "import sys, mlirt\nmlirt.compile(sys.argv[1], target='cpu')\n"
_in_processes = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a model, and files that would run in the place of modules."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    write_model(one_node("Relu", [np.ones(3, np.float32)])[0], folder / "model.onnx")
    for name in _SHADOWS:
        (folder / f"{name}.py").write_text(_SPOILER)
    (folder / ".numba_config.yaml").write_text("disable_jit: 1\n")
    return folder


def test_a_process_imports_nothing_of_the_user(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", "off")
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", str(hostile), *filter(None, sys.path))))
    monkeypatch.setattr(sys, "path", [str(hostile), *sys.path])
    monkeypatch.setattr(CompilerProcess, "_idle", {})
    assert compile_kernels({"fill": _KERNEL}, cpu_target())["fill"][:4] == b"\x7fELF"
    CompilerProcess.stop_idle()
    assert not (hostile / "ran").exists(), (hostile / "ran").read_text()


@pytest.mark.parametrize("command", [[str(_BIN / "rt-exec")], [sys.executable, "-m", "mlirt.tools.rt_exec"]])
def test_the_tools_run_no_file_that_lies_beside_the_model(hostile: Path, command: list[str]) -> None:
    if "-m" in command:  # Python itself reads these before any module of ours
        for name in ("runpy", "struct", "select"):
            (hostile / f"{name}.py").unlink()
    done = subprocess.run(
        [*command, "--onnx=model.onnx", "--target=cpu", "--saveEngine=model.plan", "--buildOnly"],
        cwd=hostile,
        env=dict(os.environ, MLIRT_CACHE="off"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (hostile / "ran").exists(), (hostile / "ran").read_text()


def test_packages_come_from_where_this_process_has_them(tmp_path: Path) -> None:
    other, shadow = tmp_path / "other", tmp_path / "shadow"
    for folder in (other, shadow):
        folder.mkdir()
        (folder / "html.py").write_text(_SPOILER)
    (other / "xdsl").mkdir()
    (other / "xdsl" / "__init__.py").touch()
    script = (
        f"import sys; sys.path[:0] = [{str(shadow)!r}, {str(other)!r}]\n"
        "from mlirt.builder.compiler_process import _package_folders\n"
        "print(*_package_folders(), sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    folders = done.stdout.split("\n")
    assert folders[0] == str(other)
    assert str(shadow) not in folders
    assert str(Path(np.__file__).parents[1]) in folders


def test_a_forked_child_has_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    idle: Any = {"kind": [object()]}
    monkeypatch.setattr(CompilerProcess, "_idle", idle)
    CompilerProcess.forget_parents()
    assert CompilerProcess._idle == {}  # pyright: ignore[reportPrivateUsage]


@_in_processes
@pytest.mark.parametrize("tool", ["rt-exec", "rt-opt", "python"])
def test_an_interrupt_ends_a_build_at_once(tmp_path: Path, tool: str) -> None:
    model = tmp_path / "model.onnx"
    write_model(network(), model)
    commands: dict[str, list[str]] = {
        "rt-exec": [str(_BIN / "rt-exec"), f"--onnx={model}", "--target=cpu", f"--saveEngine={tmp_path / 'a.plan'}"],
        "rt-opt": [str(_BIN / "rt-opt"), str(tmp_path / "check.mlir"), "--run=cpu", "-o", str(tmp_path / "out.mlir")],
        "python": [sys.executable, "-c", _COMPILE, str(model)],
    }
    (tmp_path / "check.mlir").write_text(_CHECK)
    before = sorted(tmp_path.iterdir())
    build = subprocess.Popen(
        commands[tool],
        env=dict(os.environ, MLIRT_CACHE="off", MLIRT_JOBS="2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        process_group=0,
        preexec_fn=restore_interrupts,
    )
    workers = _workers_of(build)
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)  # as deaf as one that is in the middle of a long call
    time.sleep(0.2)
    start = time.monotonic()
    os.killpg(build.pid, signal.SIGINT)
    text, _ = build.communicate(timeout=20)
    assert time.monotonic() - start < 4.0  # other tests run beside this one
    if tool == "python":
        assert build.returncode == -signal.SIGINT
        assert text.rstrip().endswith("KeyboardInterrupt")
    else:
        assert build.returncode == 130
        assert "Traceback" not in text
        assert "interrupted" in text
    assert not any(_is_alive(worker) for worker in workers)
    assert sorted(tmp_path.iterdir()) == before


@_in_processes
def test_compilers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    write_model(network(), tmp_path / "model.onnx")
    build = subprocess.Popen(
        [sys.executable, "-c", _COMPILE, "model.onnx"], cwd=tmp_path, env=dict(os.environ, MLIRT_CACHE="off")
    )
    workers = _workers_of(build)
    build.kill()
    build.wait()
    _wait_until(lambda: not any(map(_is_alive, workers)), 5.0)


_CHECK = """
func.func @relu() {
  %x = check.input {value = dense<[1.0, -2.0]> : tensor<2xf32>} : tensor<2xf32>
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %expected = trt.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : tensor<2xf32>
  check.expect_close %y, %expected : tensor<2xf32>, tensor<2xf32>
  func.return
}
"""


def _workers_of(build: subprocess.Popen[Any]) -> list[int]:
    """The compiler processes of a build, once there are some."""
    _wait_until(lambda: build.poll() is not None or bool(_compilers(build.pid)), 60.0)
    assert build.returncode is None
    time.sleep(0.1)
    return _compilers(build.pid)


def _compilers(parent: int) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            status = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(status[1]) == parent and b"numba_cpu_worker" in command:
            found.append(int(folder.name))
    return found


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _wait_until(holds: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_process_that_nobody_asks_ends(tmp_path: Path) -> None:
    """After some idle seconds, and not while it answers, however long that takes."""
    script = (
        "import sys, time\n"
        "from mlirt.builder import compiler_process\n"
        "compiler_process._IDLE_SECONDS, compiler_process._LOOKS_FOR_PARENT = 0.4, 0.05\n"
        "def slow(request):\n"
        "    time.sleep(1.2)\n"
        "    return {'answer': request['number']}, [b'bytes']\n"
        "compiler_process.serve(slow)\n"
    )
    command = [sys.executable, "-c", script, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"number": 3}\n')
        process.stdin.flush()
        assert process.stdout.readline() == b'{"answer": 3, "sizes": [5]}\n'
        assert process.stdout.read(5) == b"bytes"
        assert process.wait(10) == 0
