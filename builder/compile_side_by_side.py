"""Compiles many kernels with some processes side by side, which take them from one list until it is empty."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from mlirt.builder.compiler_process import CompilerProcess
from mlirt.errors import CompileError

_KERNELS_PER_PROCESS = 3  # starting a process costs as much as compiling some

Code = TypeVar("Code")
Report: TypeAlias = "Callable[[str, int, int], None]"


class RunningCompilers:
    """The compiler processes of a build, which end together where it is given up."""

    def __init__(self) -> None:
        self.ended = False
        self._lock = threading.Lock()
        self._processes: list[CompilerProcess] = []

    def add(self, process: CompilerProcess) -> None:
        """One that begins to work."""
        with self._lock:
            self._processes.append(process)
            if self.ended:
                process.end()

    def remove(self, process: CompilerProcess) -> None:
        """One that has nothing left to do."""
        with self._lock:
            self._processes.remove(process)

    def end(self) -> None:
        """End them all, in the middle of their work."""
        with self._lock:
            self.ended = True
            for process in self._processes:
                process.end()


class Progress:
    """Counts compiled kernels for whoever watches: a text, the kernels done and the kernels in all."""

    def __init__(self, report: Report | None, done: int, total: int) -> None:
        self._report, self._done, self._total = report, done, total
        self._tell("compiling kernels")

    def count(self, kernel: str) -> None:
        """One more is done."""
        self._done += 1
        self._tell(f"compiling kernels ({kernel})")

    def _tell(self, text: str) -> None:
        if self._report is not None:
            self._report(text, self._done, self._total)


def compile_side_by_side(
    lengths: Mapping[str, int],
    processes: int,
    start: Callable[[], CompilerProcess],
    compile_one: Callable[[CompilerProcess, str], Code],
    progress: Progress,
    failures: dict[str, CompileError] | None = None,
    running: RunningCompilers | None = None,
) -> dict[str, Code]:
    """The code of each kernel by its name, the longest sources first.

    The first `CompileError` stops all and is raised; with `failures` it is put there and the rest is compiled.
    An interrupt ends the processes in the middle of their work, as `running.end()` does.
    """
    names = sorted(lengths, key=lambda name: lengths[name])
    lock, stops, done = threading.Lock(), list[BaseException](), dict[str, Code]()
    running = running or RunningCompilers()

    def work() -> None:
        try:
            with start() as process:
                running.add(process)
                while not stops and not running.ended:
                    with lock:
                        if not names:
                            break
                        name = names.pop()
                    try:
                        code = compile_one(process, name)
                    except CompileError as error:
                        if failures is None:
                            raise
                        failures[name] = error
                        continue
                    with lock:
                        done[name] = code
                        progress.count(name)
                running.remove(process)
        except BaseException as error:
            stops.append(error)
            if not isinstance(error, Exception):
                running.end()

    count = min(processes, -(-len(lengths) // _KERNELS_PER_PROCESS))
    others = [threading.Thread(target=work, name=f"compile-{number}") for number in range(1, count)]
    try:
        for other in others:
            other.start()
        work()
        for other in others:
            other.join()
    except BaseException:
        running.end()
        raise
    if stops:
        raise stops[0]
    return done


def compilers_side_by_side() -> int:
    """How many compilers to run side by side: MLIRT_JOBS, or the cores that this process may use."""
    wanted = os.environ.get("MLIRT_JOBS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
