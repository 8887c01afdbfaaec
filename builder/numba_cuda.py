"""Source of CUDA kernels to cubins: from the cache where they are known, else by numba-cuda, a process per core.

The cache keeps their PTX too, so that code for another architecture is only assembled.
"""

from __future__ import annotations

import logging
import os
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mlirt.builder.assemblers.choice import VARIABLE, asked_assembler, assembler_versions
from mlirt.builder.compile_side_by_side import (
    Progress,
    Report,
    RunningCompilers,
    compile_side_by_side,
    compilers_side_by_side,
)
from mlirt.builder.compiler_process import CompilerProcess
from mlirt.builder.cubin import Cubin, packed, unpacked
from mlirt.builder.gpu_code import ARCHITECTURES, COMPUTE, SWITCH
from mlirt.builder.kernel_cache import KernelCache, key_of, sources_digest, versions
from mlirt.builder.numba_cuda_compiler import assembled_text, front_of
from mlirt.errors import CompileError, UnsupportedError

if TYPE_CHECKING:
    from mlirt.codegen.numba_cuda.kernel_text import KernelSource

_HERE = Path(__file__).parent
_LOG = logging.getLogger("mlirt")
_COMPILER = ("numba_cuda_compiler", "older_ptx", "ptx_without_calls")
_GIVES_REGISTERS = "set_registers("  # in the source of kernels that an assembler of whole programs takes
_PTX = "ptx of "  # in front of an architecture, in keys
Cubins: TypeAlias = "dict[str, Cubin]"


def compile_kernels(
    sources: Mapping[str, KernelSource],
    report: Report | None = None,
    architectures: Sequence[str] = ARCHITECTURES,
    failures: dict[str, CompileError] | None = None,
    running: RunningCompilers | None = None,
) -> dict[str, Cubins]:
    """The machine code of each kernel by its name and by architecture; of `compute_80` it is compressed PTX.

    Raises `UnsupportedError` where the compiler is not installed, `CompileError` that names the kernel; with
    `failures`, the errors are put there and the rest is compiled.
    `report` is called with a text, the kernels done and the kernels in all; `running` knows the compilers meanwhile.
    """
    cache, done = KernelCache(), dict[str, Cubins]()
    missing, wanted = dict[str, list[str]](), dict[str, Sequence[str]]()
    for name, source in sources.items():
        wanted[name] = _wanted(source, architectures)
        found = {arch: _kept(cache, key_of_kernel(name, source, arch)) for arch in wanted[name]}
        done[name] = {arch: cubin for arch, cubin in found.items() if cubin is not None}
        if len(done[name]) < len(wanted[name]):
            missing[name] = [arch for arch, cubin in found.items() if cubin is None]
    if missing:
        progress = Progress(report, len(sources) - len(missing), len(sources))
        texts = {name: sources[name] for name in missing}

        def keep(name: str, cubins: Cubins) -> None:
            for arch, cubin in cubins.items():
                if not cubin.remark:
                    cache.put(key_of_kernel(name, sources[name], arch), packed(cubin))

        for name, cubins in _compile(texts, missing, progress, failures, running, keep).items():
            done[name] |= cubins
        _tell_remarks(done)
    complete = {name: cubins for name, cubins in done.items() if len(cubins) == len(wanted[name])}
    if os.environ.get(SWITCH, "0") not in ("", "0"):
        _check_machine_code(complete, failures)
    return {name: {arch: cubins[arch] for arch in wanted[name]} for name, cubins in complete.items()}


def _tell_remarks(made: Mapping[str, Cubins]) -> None:
    """Warn where another assembler than the one asked for made kernels: once, as the reason is most often the same."""
    remarks = [cubin.remark for cubins in made.values() for cubin in cubins.values() if cubin.remark]
    if remarks:
        more = f" (and {len(remarks) - 1} more)" if len(remarks) > 1 else ""
        warnings.warn(f"{remarks[0]}{more}; {VARIABLE} names another assembler", stacklevel=3)


def _check_machine_code(made: dict[str, Cubins], failures: dict[str, CompileError] | None) -> None:
    """Refuse kernels whose code uses what an asynchronous operation has not finished."""
    from mlirt.builder.machine_code.check import faults_of_all

    every = ((name, arch, cubin.code) for name, cubins in made.items() for arch, cubin in cubins.items())
    codes = {(name, arch): code for name, arch, code in every if not arch.startswith(COMPUTE)}
    for (name, architecture), faults in zip(codes, faults_of_all(list(codes.values())), strict=True):
        if faults:
            error = CompileError(
                f"kernel {name} for {architecture}: the assembler made code that does not wait: {faults[0]}; "
                "use another version of nvidia-nvjitlink, or report this"
            )
            if failures is None:
                raise error
            failures[name] = error
            made.pop(name, None)


def _kept(cache: KernelCache, key: str) -> Cubin | None:
    entry = cache.get(key, lambda entry: unpacked(entry) is not None)
    return None if entry is None else unpacked(entry)


def _wanted(source: KernelSource, architectures: Sequence[str]) -> Sequence[str]:
    """The architectures that a kernel is compiled for: one of a single one is for that, with its PTX if it is kept."""
    if not source.architecture:
        return architectures
    own = [code for code in architectures if code.replace(COMPUTE, "sm_") == source.architecture]
    return own or (source.architecture,)


def key_of_kernel(name: str, source: KernelSource, code: str) -> str:
    """The key of a kernel's machine code for an architecture, or of the PTX that it is made from."""
    files = (_HERE / f"{name}.py" for name in _COMPILER)
    library = sources_digest(_HERE / "numba_cuda_intrinsics", _HERE / "assemblers", *files)
    packages = versions("numba", "numba-cuda", "llvmlite", "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nvjitlink")
    shape = f"{source.threads} {source.cluster} {source.resident}"
    assembler = [assembler_versions()] if _GIVES_REGISTERS in source.text and not code.startswith(_PTX) else []
    return key_of("cuda", name, source.text, shape, code, library, packages, *assembler)


def _compile(
    sources: Mapping[str, KernelSource],
    architectures: Mapping[str, Sequence[str]],
    progress: Progress,
    failures: dict[str, CompileError] | None,
    running: RunningCompilers | None,
    keep: Callable[[str, Cubins], None],
) -> dict[str, Cubins]:
    """The machine code of each source; `keep` has each once it is there: a build that ends early loses none."""
    _need_compiler()
    cache = KernelCache()
    if any(_GIVES_REGISTERS in source.text for source in sources.values()):
        _LOG.info("mlirt: the assembler of kernels whose warpgroups give registers is %s", assembler_versions())

    def compile_one(process: CompilerProcess, name: str) -> Cubins:
        cubins = _ask(process, sources[name], architectures[name], cache)
        keep(name, cubins)
        return cubins

    lengths = {name: len(source.text) for name, source in sources.items()}
    return compile_side_by_side(lengths, compilers_side_by_side(), _compiler, compile_one, progress, failures, running)


def _need_compiler() -> None:
    if find_spec("numba_cuda") is None:  # numba has an older compiler of its own, which cannot do this
        raise UnsupportedError(
            "kernels for GPUs are compiled by numba-cuda, which is not installed: pip install 'mlirt[cuda]'"
        )


def _compiler() -> CompilerProcess:
    return CompilerProcess("mlirt.builder.numba_cuda_worker")


def _ask(process: CompilerProcess, source: KernelSource, codes: Sequence[str], cache: KernelCache) -> Cubins:
    """The machine code of a kernel, by what it is called; PTX that is known need not be made again."""
    front = front_of(source, codes[0].replace(COMPUTE, "sm_"))
    key = key_of_kernel(source.name, source, f"{_PTX}{front}")
    known = cache.get(key, lambda entry: _text(entry) is not None)
    text = None if known is None else _text(known)
    request = {"source": asdict(source), "codes": list(codes), "front": front, "text": text}
    answer, (made, *code) = process.ask({**request, "assembler": asked_assembler()})
    if text is None:
        cache.put(key, zlib.compress(made, 1))
    pairs = zip(answer["made"], code, strict=True)
    return {name: Cubin(data, registers, spilled, remark) for (name, registers, spilled, remark), data in pairs}


def _text(entry: bytes) -> str | None:
    """The PTX of an entry of the cache; None where there is none."""
    try:
        return zlib.decompress(entry).decode()
    except (zlib.error, UnicodeDecodeError):
        return None


def ptx_texts(sources: Mapping[str, KernelSource], architecture: str) -> dict[str, str]:
    """The PTX of each kernel by its name, as it is assembled for an architecture (a kernel's own, where it has one).

    Raises `UnsupportedError` where the compiler is not installed, `CompileError` that names the kernel.
    """
    _need_compiler()
    with _compiler() as process:
        return {name: _ptx(process, source, architecture) for name, source in sources.items()}


def _ptx(process: CompilerProcess, source: KernelSource, architecture: str) -> str:
    (wanted,) = _wanted(source, [architecture])
    request = {"source": asdict(source), "front": front_of(source, wanted), "text": None}
    return assembled_text(process.ask({**request, "codes": (), "assembler": asked_assembler()})[1][0].decode(), wanted)
