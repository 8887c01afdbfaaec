"""A CUDA driver in C that keeps device memory on the host and writes down what it is asked for, for both runtimes."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from c_programs import CProgram

from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.cuda_driver import CudaDriver
from mlirt.runtime.engine import Engine
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.plan_file import Plan

Array = np.ndarray[Any, np.dtype[Any]]
NOTHING_LEFT = "left 0 allocations, 0 modules, 0 streams, 0 events, 0 graphs, 0 executables, 0 contexts"
_SOURCES = [Path(__file__).parents[1] / "runtime" / "c_library" / one for one in ("fake_cuda.c", "fake_cuda_graphs.c")]


def rows(n: int, first: float | None = None) -> dict[str, Array]:
    """An input of the tiny plan: n rows of random numbers, or of one."""
    if first is not None:
        return {"x": np.full((n, 4), first, np.float32)}
    return {"x": np.random.default_rng(n).standard_normal((n, 4), np.float32)}


@cache
def fake_folder(*options: str) -> Path:
    """A folder with the driver, compiled with these options, as the libcuda.so.1 that programs find."""
    folder = Path(tempfile.mkdtemp(prefix="fake-cuda-"))
    command = [
        "cc",
        "-std=gnu11",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        *options,
    ]
    subprocess.run([*command, "-o", str(folder / "libcuda.so.1"), *map(str, _SOURCES), "-lm"], check=True)
    return folder


@dataclass(frozen=True)
class Journal:
    """What a driver was asked for, a line each."""

    lines: Sequence[str]

    def of(self, *words: str) -> list[str]:
        """The lines that begin with one of the words."""
        return [line for line in self.lines if line.split(" ")[0] in words]

    @property
    def graphs(self) -> list[str]:
        """Captures with their nodes: kernels, arguments, and what each waits for."""
        return self.of("capture", "captured", "node")

    @property
    def flow(self) -> list[str]:
        """Copies and replays of runs, in order; weights come first and are left out."""
        wanted = self.of("h2d", "d2h", "d2d", "fill", "replay")
        return [line for line in wanted if not re.match(r"h2d m1\+", line)]

    @property
    def end(self) -> str:
        """What was not given back."""
        return self.lines[-1]


def kinds_file(manifest: Manifest, path: Path) -> Path:
    """What kernels take, as the driver reads it."""
    path.write_text("".join(f"{one.symbol} {','.join(one.args)}\n" for one in manifest.kernels))
    return path


def python_runs(
    plan: Plan, runs: Sequence[Mapping[str, Array]], folder: Path, options: Sequence[str] = ()
) -> tuple[list[dict[str, Array]], Journal]:
    """The outputs of runs by the Python runtime, and what it asked the driver for."""
    library: Any = ctypes.CDLL(str(fake_folder(*options) / "libcuda.so.1"))
    log = folder / "python.log"
    library.fake_begin(os.fsencode(log), os.fsencode(kinds_file(plan.manifest, folder / "kinds")))
    context = ExecutionContext(plan.manifest, CudaDevice(plan, CudaDriver(library)).session())
    found = [dict(context.run(feeds)) for feeds in runs]
    del context
    library.fake_begin(None, None)
    return found, Journal(log.read_text().splitlines())


class CudaProgram(CProgram):
    """The C library of a plan, run on the driver."""

    def __init__(self, plan: Plan, folder: Path, *options: str) -> None:
        super().__init__(Engine(plan, waits=True), folder)
        kinds = kinds_file(plan.manifest, folder / "kinds")
        self.threads = 0
        self.settings = {
            "LD_LIBRARY_PATH": str(fake_folder(*options)),
            "FAKE_CUDA_LOG": str(folder / "c.log"),
            "FAKE_CUDA_KERNELS": str(kinds),
        }

    @property
    def journal(self) -> Journal:
        """Of the last program that ran."""
        return Journal((self.folder / "c.log").read_text().splitlines())
