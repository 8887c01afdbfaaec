"""Source of CUDA kernels to cubins: from the cache where they are known, else by numba-cuda, a process per core."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mlirt.builder.compiler_process import CompilerProcess
from mlirt.builder.cubin import Cubin
from mlirt.builder.kernel_cache import KernelCache, key_of, sources_digest, versions
from mlirt.errors import CompileError

if TYPE_CHECKING:
    from mlirt.codegen.numba_cuda.kernel_text import KernelSource

ARCHITECTURES = ("sm_80", "sm_90a")
_HERE = Path(__file__).parent
_KERNELS_PER_PROCESS = 3  # starting a process costs as much as compiling some

Report: TypeAlias = "Callable[[str, int, int], None]"
Cubins: TypeAlias = "dict[str, Cubin]"


def compile_kernels(
    sources: Mapping[str, KernelSource],
    report: Report | None = None,
    architectures: Sequence[str] = ARCHITECTURES,
    failures: dict[str, CompileError] | None = None,
) -> dict[str, Cubins]:
    """The machine code of each kernel by its name and by architecture.

    Raises `CompileError` that names the kernel; with `failures`, the errors are put there and the rest is compiled.
    `report` is called with a text, the kernels done and the kernels in all.
    """
    cache, done = KernelCache(), dict[str, Cubins]()
    missing, wanted = dict[str, list[str]](), dict[str, Sequence[str]]()
    for name, source in sources.items():
        wanted[name] = _wanted(source, architectures)
        found = {arch: cache.get(_key(source, arch)) for arch in wanted[name]}
        done[name] = {arch: _unpacked(entry) for arch, entry in found.items() if entry is not None}
        if len(done[name]) < len(wanted[name]):
            missing[name] = [arch for arch, entry in found.items() if entry is None]
    if missing:
        progress = _Progress(report, len(sources) - len(missing), len(sources))
        for name, cubins in _compile({name: sources[name] for name in missing}, missing, progress, failures).items():
            for arch, cubin in cubins.items():
                cache.put(_key(sources[name], arch), _packed(cubin))
            done[name] |= cubins
    complete = {name: cubins for name, cubins in done.items() if len(cubins) == len(wanted[name])}
    return {name: {arch: cubins[arch] for arch in wanted[name]} for name, cubins in complete.items()}


def _wanted(source: KernelSource, architectures: Sequence[str]) -> Sequence[str]:
    """The architectures that a kernel is compiled for."""
    return (source.architecture,) if source.architecture else architectures


def _key(source: KernelSource, architecture: str) -> str:
    library = sources_digest(_HERE / "numba_cuda_intrinsics", _HERE / "numba_cuda_compiler.py")
    packages = versions("numba", "numba-cuda", "llvmlite", "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nvjitlink")
    shape = f"{source.threads} {source.cluster}"
    return key_of("cuda", source.text, shape, architecture, library, packages)


def _packed(cubin: Cubin) -> bytes:
    """An entry of the cache: a line of JSON, then the code."""
    return json.dumps([cubin.registers, cubin.spilled_bytes]).encode() + b"\n" + cubin.code


def _unpacked(entry: bytes) -> Cubin:
    header, _, code = entry.partition(b"\n")
    registers, spilled = json.loads(header)
    return Cubin(code, registers, spilled)


class _Progress:
    """Counts kernels for whoever watches."""

    def __init__(self, report: Report | None, done: int, total: int) -> None:
        self._report, self._done, self._total = report, done, total
        self.tell("compiling kernels", 0)

    def tell(self, text: str, more: int) -> None:
        self._done += more
        if self._report is not None:
            self._report(text, self._done, self._total)


def _compile(
    sources: Mapping[str, KernelSource],
    architectures: Mapping[str, Sequence[str]],
    progress: _Progress,
    failures: dict[str, CompileError] | None,
) -> dict[str, Cubins]:
    """Let processes take kernels from one list, the longest first, until it is empty or one fails."""
    names = sorted(sources, key=lambda name: len(sources[name].text))
    lock, stops, done = threading.Lock(), list[Exception](), dict[str, Cubins]()

    def work() -> None:
        try:
            with CompilerProcess("mlirt.builder.numba_cuda_worker") as process:
                while not stops:
                    with lock:
                        if not names:
                            return
                        name = names.pop()
                    try:
                        cubins = _ask(process, sources[name], architectures[name])
                    except CompileError as error:
                        if failures is None:
                            raise
                        failures[name] = error
                        continue
                    with lock:
                        done[name] = cubins
                        progress.tell(f"compiling kernels ({name})", 1)
        except Exception as error:
            stops.append(error)

    count = min(compilers_side_by_side(), -(-len(sources) // _KERNELS_PER_PROCESS))
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


def _ask(process: CompilerProcess, source: KernelSource, architectures: Sequence[str]) -> Cubins:
    answer, code = process.ask({"source": asdict(source), "architectures": list(architectures)})
    pairs = zip(answer["made"], code, strict=True)
    return {architecture: Cubin(data, registers, spilled) for (architecture, registers, spilled), data in pairs}
