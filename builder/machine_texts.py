"""The rest of a kernel's compilation as text: LLVM IR and assembly for CPUs, PTX and SASS for GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlirt.builder.host import cpu_target, cuda_target
from mlirt.codegen.launch_comments import launch_comments
from mlirt.dialects.kernel.features import features_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_COMMENTS = {"llvm": ";", "asm": "#", "ptx": "//", "sass": "//"}


def machine_text(module: ModuleOp, form: str) -> str:
    """The kernels of a module as `llvm` or `asm` (those for a CPU), `ptx` or `sass` (those for a GPU).

    Each is a text of its own behind a comment with its name and its layers. They are made for this machine's processor,
    or for MLIRT_ARCH, this machine's GPU, or sm_90a, as a build makes them.

    Raises `CompileError` that names the kernel, `MissingPackageError` where nvdisasm is not installed.
    """
    comments, mark = launch_comments(module), _COMMENTS[form]
    texts = _cpu_texts(module, form) if form in ("llvm", "asm") else _cuda_texts(module, form)
    parts = list[str]()
    for name, text in texts.items():
        about = f"# kernel {name}\n{comments.get(name, '')}".splitlines()
        parts.append("\n".join([*(mark + line.removeprefix("#") for line in about), text.strip("\n"), ""]))
    return "\n".join(parts)


def _cpu_texts(module: ModuleOp, form: str) -> dict[str, str]:
    from mlirt.builder.numba_cpu import kernel_texts
    from mlirt.codegen.numba_cpu import sources_of

    machine = cpu_target()
    wider = replace(machine, features=machine.features | features_of(module))
    return kernel_texts(sources_of(module), wider, form)


def _cuda_texts(module: ModuleOp, form: str) -> dict[str, str]:
    from mlirt.builder.machine_code.disassembler import disassemble, find_nvdisasm
    from mlirt.builder.numba_cuda import compile_kernels, ptx_texts
    from mlirt.codegen.numba_cuda.kernel_source import sources_of

    architecture = cuda_target().arch
    if form == "ptx":
        return ptx_texts(sources_of(module), architecture)
    find_nvdisasm()  # before anything is compiled
    made = compile_kernels(sources_of(module), architectures=[architecture])
    codes = [cubin.code for cubins in made.values() for cubin in cubins.values()]
    return dict(zip(made, disassemble(codes), strict=True))
