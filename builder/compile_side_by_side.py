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
) -> dict[str, Code]:
    """The code of each kernel by its name, the longest sources first.

    The first `CompileError` stops all and is raised; with `failures` it is put there and the rest is compiled.
    """
    names = sorted(lengths, key=lambda name: lengths[name])
    lock, stops, done = threading.Lock(), list[Exception](), dict[str, Code]()

    def work() -> None:
        try:
            with start() as process:
                while not stops:
                    with lock:
                        if not names:
                            return
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
        except Exception as error:
            stops.append(error)

    count = min(processes, -(-len(lengths) // _KERNELS_PER_PROCESS))
    others = [threading.Thread(target=work, name=f"compile-{number}") for number in range(1, count)]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    if stops:
        raise stops[0]
    return done


def compilers_side_by_side() -> int:
    """How many compilers to run side by side: MLIRT_JOBS, or the cores that this process may use."""
    wish = os.environ.get("MLIRT_JOBS", "")
    if wish.isdecimal() and int(wish):
        return int(wish)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
