"""A pass, a tactic or a kernel that ends the process is found like one that computes something wrong."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from interrupted_process import restore_interrupts

from mlirt.errors import InvalidInputError
from mlirt.tools.debugging.apart import CrashedError, apart

HEAD = """\
import os
import sys
import time
from dataclasses import dataclass

from xdsl.passes import ModulePass

from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.tensor_types import dims
"""
TACTIC = """
OPS, TARGETS, PRIORITY = (WindowOp,), frozenset({"cpu"}), 1000


def lower(op, lowering):
"""
ABORT = HEAD + TACTIC + "    os.abort()\n"
EXIT = HEAD + TACTIC + "    os._exit(0)\n"
ASTRAY = (
    HEAD
    + TACTIC
    + """\
    shape = dims(op.results[0].type)
    k = lowering.kernel("astray")
    with k.parallel([*shape]) as place:
        k.store(k.load(op.input, [*place[:-1], k.constant(1 << 30)]), op.results[0], place)
    k.finish(op)
    return True
"""
)
PASS = (
    HEAD
    + """

@dataclass(frozen=True)
class AbortingPass(ModulePass):
    name = "aborting"

    def apply(self, ctx, op):
        os.abort()
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = Path(__file__).parents[3] / "examples" / "small_network.py"
    onnx.save(runpy.run_path(str(script))["small_network"](), tmp_path / "small.onnx")  # pyright: ignore[reportUnknownMemberType]
    for name, text in {"abort": ABORT, "exit": EXIT, "astray": ASTRAY, "pass": PASS}.items():
        (tmp_path / f"{name}_plugin.py").write_text(text, encoding="utf-8")
    return tmp_path


def debug(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """The exit code and the lines of the command."""
    command = [sys.executable, "-P", "-m", "mlirt.tools.rt_debug", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("plugin", "flags", "guilty"),
    [
        ("abort", ["bisect"], ["guilty: kernel: fused.window (crashed: SIGABRT)", "  at pool"]),
        ("exit", ["repeat"], ["guilty: kernel: fused.window (crashed: exit code 0)", "  at pool"]),
        ("astray", ["compare"], ["guilty: kernel: fused.window (crashed: SIGSEGV)", "  at pool"]),
    ],
)
def test_a_tactic_that_crashes(folder: Path, plugin: str, flags: Sequence[str], guilty: list[str]) -> None:
    code, lines = debug(folder, *flags, "small.onnx", f"--load-pass-plugin={plugin}_plugin.py")
    assert code == 1
    assert lines[-2:] == guilty


def test_a_pass_that_crashes(folder: Path) -> None:
    edit = "--pipeline-edit=after=fuse-padding-convolution:aborting"
    code, lines = debug(folder, "bisect", "small.onnx", "--load-pass-plugin=pass_plugin.py", edit)
    assert code == 1
    assert lines[0] == "crashed: SIGABRT; from here on what may crash runs in processes of its own"
    assert any(line.startswith("guilty: pass number ") and "aborting (crashed: SIGABRT)" in line for line in lines)
    assert any(line.startswith("after ") and line.endswith("crashed: SIGABRT") for line in lines)


def test_a_crash_is_reduced(folder: Path) -> None:
    code, lines = debug(folder, "reduce", "small.onnx", "-o", "part.mlir", "--load-pass-plugin=astray_plugin.py")
    assert code == 0
    assert "what fails alone: pool (1 of 11 layers)" in lines
    assert lines[-1].startswith("1 layer: part.mlir; ")
    code, lines = debug(
        folder, "reduce", "small.onnx", "-o", "said.mlir", "--error=SIGSEGV", "--load-pass-plugin=astray_plugin.py"
    )
    assert code == 0
    assert lines[-1].startswith("1 layer: said.mlir; ")


def test_a_command_without_a_crash_ends_as_ever(folder: Path) -> None:
    assert debug(folder, "compare", "small.onnx")[0] == 0


def test_ctrl_c_ends_the_child_too(folder: Path) -> None:
    (folder / "pass_plugin.py").write_text(PASS.replace("os.abort()", "open('runs', 'w'); time.sleep(60)"))
    edit = "--pipeline-edit=after=fuse-padding-convolution:aborting"
    command = [sys.executable, "-P", "-m", "mlirt.tools.rt_debug", "bisect", "small.onnx", edit]
    command.append("--load-pass-plugin=pass_plugin.py")
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=restore_interrupts,
    ) as process:
        while not (folder / "runs").exists():
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=20)  # it ends when the child has closed them, too
    assert (process.returncode, error) == (130, "rt-debug: interrupted\n")


def test_what_a_child_gives() -> None:
    def refuse() -> None:
        raise InvalidInputError("no such thing")

    assert apart(lambda: {"pid": os.getpid()})["pid"] != os.getpid()
    with pytest.raises(InvalidInputError, match="no such thing"):
        apart(refuse)
    for end, how in ((os.abort, "SIGABRT"), (lambda: os._exit(3), "exit code 3"), (lambda: sys.exit(4), "exit code 4")):
        with pytest.raises(CrashedError, match=f"^crashed: {how}$"):
            apart(end)


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import os, time\nfrom pathlib import Path\nfrom mlirt.tools.debugging.apart import apart\n"
        "def run():\n    Path('pid').write_text(str(os.getpid()))\n    time.sleep(60)\n"
        "apart(run)\n"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", script], cwd=tmp_path) as process:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.05)
        child = int((tmp_path / "pid").read_text())
        process.kill()
    ends = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}/stat").exists()
