"""C and C++ programs that use exported networks: compiled here, run, and compared with the engine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlirt.runtime.c_library.export import export_c
from mlirt.runtime.engine_interface import EngineLike

Array = np.ndarray[Any, np.dtype[Any]]
NEEDS_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")
_PROGRAM = Path(__file__).parents[1] / "runtime" / "c_library" / "run_library.c"
_WARNINGS = ("-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread")


@dataclass
class CProgram:
    """The C library of an engine, and the program that runs it."""

    engine: EngineLike
    folder: Path
    file: Path = field(init=False)
    threads: int = field(init=False, default=1)
    """Of runs that fail; of a device its number."""
    settings: Mapping[str, str] = field(init=False, default_factory=dict[str, str])
    """What is set in the environment of the programs that run, beside the test's own."""

    def __post_init__(self) -> None:
        export_c(self.engine, self.folder)
        self.file = self.folder / "run"
        compiled("cc", _PROGRAM, self.file, self.folder, *_WARNINGS, "-Wl,-rpath,$ORIGIN", "-L.", "-lnet")

    def command(self, feeds: Mapping[str, Array], threads: int = 1, handles: int = 1, runs: int = 1) -> list[str]:
        """The arguments of a run whose outputs are in memory that begins at an odd place."""
        found = [str(self.file), str(threads), str(handles), str(runs), "0"]
        for number, tensor in enumerate(self.engine.inputs):
            array = feeds[tensor.name]
            (self.folder / f"input_{number}.bin").write_bytes(array.tobytes())
            found += [f"input_{number}.bin", ",".join(map(str, array.shape))]
        return found

    def outputs(
        self, feeds: Mapping[str, Array], threads: int = 1, handles: int = 1, runs: int = 2, *, keeps: int = 0
    ) -> dict[str, Array]:
        """What the last run of the program finds; it compares those of all handles and all runs itself.

        `keeps`: as `KEEP` in run_library.c.
        """
        command = self.command(feeds, threads, handles, runs)
        command[4] = str(keeps)
        done = self.run(command)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        found: dict[str, Array] = {}
        for number, (line, tensor) in enumerate(zip(done.stdout.splitlines(), self.engine.outputs, strict=True)):
            name, *shape = line.split(" ")
            assert name == tensor.name
            content = (self.folder / f"output_{number}.bin").read_bytes()
            found[name] = np.frombuffer(content, np.dtype(tensor.dtype)).reshape([int(one) for one in shape])
        return found

    def error(self, feeds: Mapping[str, Array]) -> str:
        """The line of a run that fails."""
        done = self.run(self.command(feeds, self.threads))
        assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
        return done.stdout.strip()

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder, with the settings."""
        environment = {**os.environ, **self.settings}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)


def compiled(compiler: str, source: Path, program: Path, folder: Path, *options: str) -> None:
    """Compile a program with the headers of a folder."""
    command = [compiler, f"-I{folder}", str(source), "-o", str(program), *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def assert_same_bits(found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """The same names, shapes, types and bytes."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].shape == array.shape, name
        assert found[name].dtype == array.dtype, name
        assert found[name].tobytes() == array.tobytes(), name
