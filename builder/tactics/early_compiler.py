"""Compiles kernels while others are still being lowered: both take about as long, on different cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mlirt.builder.compile_side_by_side import RunningCompilers, compilers_side_by_side
from mlirt.builder.cubin import stored
from mlirt.builder.numba_cuda import compile_kernels
from mlirt.builder.tactics.plan_code import PlanCode

if TYPE_CHECKING:
    from mlirt.builder.cubin import Cubin
    from mlirt.codegen.numba_cuda.kernel_text import KernelSource

_COMPILERS_EACH = 4  # that the kernels of one layer keep busy


def cuda_plan_code(cubins: Mapping[str, Mapping[str, Cubin]], architecture: str) -> PlanCode:
    """The code of a plan for one architecture by the names of its kernels."""
    return PlanCode(*stored(cubins), {"target": {"kind": "cuda", "arch": architecture}})


class EarlyCompiler:
    """Takes kernels for one architecture as they come; those that do not compile are left out."""

    def __init__(self, architecture: str) -> None:
        self._architecture = architecture
        self._pool = ThreadPoolExecutor(max(1, compilers_side_by_side() // _COMPILERS_EACH), "compile")
        self._compilers = RunningCompilers()
        self._taken: set[KernelSource] = set()
        self._running: list[tuple[dict[str, KernelSource], Future[dict[str, dict[str, Cubin]]]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._compilers.end()
        self._pool.shutdown(cancel_futures=True)

    def take(self, sources: Iterable[KernelSource]) -> None:
        """Begin to compile those that are new. Kernels of different layers may share a name, but not their text."""
        new: list[KernelSource] = [source for source in dict.fromkeys(sources) if source not in self._taken]
        self._taken.update(new)
        while new:
            batch = {source.name: source for source in reversed(new)}
            new = [source for source in new if batch[source.name] is not source]
            job = self._pool.submit(compile_kernels, batch, None, [self._architecture], {}, self._compilers)
            self._running.append((batch, job))

    def finish(self) -> dict[KernelSource, dict[str, Cubin]]:
        """The code of all that was taken, by architecture."""
        done: dict[KernelSource, dict[str, Cubin]] = {}
        for batch, job in self._running:
            done |= {batch[name]: cubins for name, cubins in job.result().items()}
        return done
