"""Source of CPU kernels to object files: from the cache where they are known, else by numba, a process per core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from mlirt.builder.code_processor import CodeProcessor
from mlirt.builder.compile_side_by_side import Progress, Report, compile_side_by_side, compilers_side_by_side
from mlirt.builder.compiler_process import CompilerProcess
from mlirt.builder.kernel_cache import KernelCache, key_of, sources_digest, versions
from mlirt.dialects.target import Target
from mlirt.errors import CompileError
from mlirt.runtime.elf_symbols import defines
from mlirt.runtime.host_cpu import host_architecture, host_triple
from mlirt.systems import architecture_of, reserved_features

_HERE = Path(__file__).parent
_BASELINES = {"x86_64": "x86-64"}
"""LLVM's names of the least processor of an architecture that is called otherwise than "generic"."""


def compile_kernels(sources: Mapping[str, str], target: Target, report: Report | None = None) -> dict[str, bytes]:
    """The object file of each kernel by its name; raises `CompileError` that names the kernel.

    `report` is called with a text, the kernels done and the kernels in all.
    """
    cache = KernelCache()
    keys = {name: _key(name, source, target) for name, source in sources.items()}
    machine = code_processor(target).architecture
    known = {name: cache.get(key, partial(_is_kernel, name, machine)) for name, key in keys.items()}
    objects = {name: code for name, code in known.items() if code is not None}
    missing = {name: source for name, source in sources.items() if name not in objects}
    if missing:
        progress = Progress(report, len(objects), len(sources))
        objects |= _compile(missing, target, progress, lambda name, code: cache.put(keys[name], code))
    return {name: objects[name] for name in sources}


def _is_kernel(name: str, machine: str, code: bytes) -> bool:
    return defines(code, name, machine)


def _key(name: str, source: str, target: Target) -> str:
    files = ("compiler", "names", "translator")
    library = sources_digest(
        _HERE / "numba_cpu_intrinsics",
        _HERE / "numba_object_codegen.py",
        *(_HERE / f"numba_cpu_{one}.py" for one in files),
    )
    packages = versions("numba", "llvmlite", "numpy")
    made_for = code_processor(target)
    processor = f"{made_for.triple} {made_for.cpu} {','.join(made_for.features)}"
    return key_of("cpu", name, source, processor, library, packages)


def code_processor(target: Target) -> CodeProcessor:
    """The processor as LLVM is told: the baseline of its architecture, and features."""
    triple = target.triple or host_triple()
    name = _BASELINES.get(architecture_of(triple), "generic")
    wide = ["-prefer-256-bit"] if target.vector_bits == 512 else []
    told = (*sorted(target.features), *reserved_features(triple))
    return CodeProcessor(triple, name, (*(f"+{feature}" for feature in told), *wide))


def _compile(
    sources: Mapping[str, str], target: Target, progress: Progress, keep: Callable[[str, bytes], None]
) -> dict[str, bytes]:
    """The object file of each source; `keep` has each once it is there: a build that ends early loses none."""

    def compile_one(process: CompilerProcess, kernel: str) -> bytes:
        code = _ask(process, kernel, sources[kernel])
        keep(kernel, code)
        return code

    lengths = {kernel: len(source) for kernel, source in sources.items()}
    return compile_side_by_side(lengths, compilers_side_by_side(), lambda: _compiler(target), compile_one, progress)


def _compiler(target: Target) -> CompilerProcess:
    made_for = code_processor(target)
    # numba translates for the processor that it runs on: of another architecture it knows nothing.
    is_own = made_for.architecture == host_architecture()
    name, features = (made_for.cpu, made_for.llvm_features) if is_own else ("generic", "")
    variables = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    return CompilerProcess("mlirt.builder.numba_cpu_worker", variables | made_for.variables())


def _ask(process: CompilerProcess, kernel: str, source: str, form: str = "") -> bytes:
    try:
        return process.ask({"name": kernel, "source": source, "form": form})[1][0]
    except CompileError as error:
        raise CompileError(f"kernel {kernel}: {error}") from None


def kernel_texts(sources: Mapping[str, str], target: Target, form: str) -> dict[str, str]:
    """The LLVM IR (`form` is `llvm`) or the assembly (`asm`) of each kernel by its name, as an object file has it.

    Raises `CompileError` that names the kernel.
    """
    with _compiler(target) as process:
        return {name: _ask(process, name, source, form).decode() for name, source in sources.items()}
