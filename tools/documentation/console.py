"""Runs the commands of a page in a folder of their own, and writes down what they print."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlirt.errors import CompileError

_PROMPT = "$ "
_LIMIT = 300


@dataclass(frozen=True)
class Console:
    """A shell in `folder`, where `small.onnx` lies and `examples` are; `root` is the repository."""

    folder: Path
    root: Path

    def __post_init__(self) -> None:
        (self.folder / "examples").symlink_to(self.root / "examples")
        script = self.root / "examples" / "small_network.py"
        self._run([sys.executable, str(script), "small.onnx"])

    def replay(self, transcript: str) -> str:
        """The same commands with what they print today; one that fails ends with its exit code.

        Raises `CompileError` for a command that fails where the page shows none that does.

        A command is a line that starts with `$ `, and the lines after it while they end with a backslash. Output that
        was shortened by a line of dots is shortened in the same way: what stands before it and after it is kept.
        """
        return "".join(self._replayed(command, shown) for command, shown in _commands(transcript))

    def _replayed(self, command: str, shown: list[str]) -> str:
        done = self._shell(command)
        lines = (done.stdout + done.stderr).rstrip("\n").splitlines()
        if done.returncode:
            lines.append(f"(exit code {done.returncode})")
            if lines[-1] not in shown:
                raise CompileError(f"an example fails, which it did not: {command}\n{done.stdout}{done.stderr}")
        if "..." in shown:
            cut = shown.index("...")
            after = len(shown) - cut - 1
            lines = [*lines[:cut], "...", *lines[len(lines) - after :]]
        text = "".join(f"{line.rstrip()}\n" for line in lines)
        return f"{_PROMPT}{command}\n{text}"

    def _shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return self._start(["bash", "-c", f"set -o pipefail\n{command}"])

    def run_python(self, statements: str) -> str:
        """What Python statements print; raises `CompileError` where they fail."""
        return self._run([sys.executable, "-c", statements])

    def _run(self, command: list[str]) -> str:
        done = self._start(command)
        if done.returncode:
            raise CompileError(f"an example of a document fails: {' '.join(command)}\n{done.stderr}")
        return done.stdout

    def _start(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {**os.environ, "PATH": path, "COLUMNS": "100", "TERM": "dumb"}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )


def _commands(transcript: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a transcript with the lines that it printed then."""
    command: str | None = None
    shown: list[str] = []
    for line in transcript.splitlines():
        if line.startswith(_PROMPT):
            if command is not None:
                yield command, shown
            command, shown = line.removeprefix(_PROMPT), []
        elif command is not None and command.endswith("\\") and not shown:
            command = f"{command}\n{line}"
        else:
            shown.append(line)
    if command is not None:
        yield command, shown
