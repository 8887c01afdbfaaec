"""Source of CUDA kernels to cubins: from the cache where they are known, else by numba-cuda in up to two processes."""

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

if TYPE_CHECKING:
    from mlirt.codegen.numba_cuda.kernel_text import KernelSource

ARCHITECTURES = ("sm_80", "sm_90a")
_HERE = Path(__file__).parent
_MOST_PROCESSES = 2
_KERNELS_PER_PROCESS = 3  # starting a process costs as much as compiling some

Report: TypeAlias = "Callable[[str, int, int], None]"
Cubins: TypeAlias = "dict[str, Cubin]"


def compile_kernels(
    sources: Mapping[str, KernelSource], report: Report | None = None, architectures: Sequence[str] = ARCHITECTURES
) -> dict[str, Cubins]:
    """The machine code of each kernel by its name and by architecture; raises `CompileError` that names the kernel.

    `report` is called with a text, the kernels done and the kernels in all.
    """
    cache, done = KernelCache(), dict[str, Cubins]()
    keys = {name: _key(source, architectures) for name, source in sources.items()}
    for name, key in keys.items():
        found = cache.get(key)
        if found is not None:
            done[name] = _unpacked(found)
    missing = {name: source for name, source in sources.items() if name not in done}
    if missing:
        _compile(missing, done, report, len(sources), architectures)
        for name in missing:
            cache.put(keys[name], _packed(done[name]))
    return {name: done[name] for name in sources}


def _offered(source: KernelSource, architectures: Sequence[str]) -> Sequence[str]:
    """The architectures that a kernel is compiled for."""
    return (source.architecture,) if source.architecture else architectures


def _key(source: KernelSource, architectures: Sequence[str]) -> str:
    library = sources_digest(_HERE / "numba_cuda_intrinsics", _HERE / "numba_cuda_compiler.py")
    packages = versions("numba", "numba-cuda", "llvmlite", "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nvjitlink")
    shape = f"{source.threads} {source.cluster}"
    return key_of("cuda", source.text, shape, ",".join(_offered(source, architectures)), library, packages)


def _packed(cubins: Cubins) -> bytes:
    """An entry of the cache: a line of JSON, then the code of each architecture."""
    header = [(arch, len(one.code), one.registers, one.spilled_bytes) for arch, one in cubins.items()]
    return json.dumps(header).encode() + b"\n" + b"".join(one.code for one in cubins.values())


def _unpacked(entry: bytes) -> Cubins:
    header, _, code = entry.partition(b"\n")
    cubins: Cubins = {}
    for architecture, size, registers, spilled in json.loads(header):
        cubins[architecture] = Cubin(code[:size], registers, spilled)
        code = code[size:]
    return cubins


def _compile(
    sources: Mapping[str, KernelSource],
    done: dict[str, Cubins],
    report: Report | None,
    total: int,
    architectures: Sequence[str],
) -> None:
    """Let processes take kernels from one list, the longest first, until it is empty or one fails."""
    names = sorted(sources, key=lambda name: len(sources[name].text))
    lock, failures = threading.Lock(), list[Exception]()
    if report is not None:
        report("compiling kernels", len(done), total)

    def work() -> None:
        try:
            with CompilerProcess("mlirt.builder.numba_cuda_worker") as process:
                while not failures:
                    with lock:
                        if not names:
                            return
                        name = names.pop()
                    cubins = _ask(process, sources[name], architectures)
                    with lock:
                        done[name] = cubins
                        if report is not None:
                            report(f"compiling kernels ({name})", len(done), total)
        except Exception as error:
            failures.append(error)

    count = min(_MOST_PROCESSES, os.cpu_count() or 1, -(-len(sources) // _KERNELS_PER_PROCESS))
    others = [threading.Thread(target=work, name=f"compile-{number}") for number in range(1, count)]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    if failures:
        raise failures[0]


def _ask(process: CompilerProcess, source: KernelSource, architectures: Sequence[str]) -> Cubins:
    answer, code = process.ask({"source": asdict(source), "architectures": list(_offered(source, architectures))})
    pairs = zip(answer["made"], code, strict=True)
    return {architecture: Cubin(data, registers, spilled) for (architecture, registers, spilled), data in pairs}
