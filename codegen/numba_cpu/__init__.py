"""The source of CPU kernels: explicit vectors and register tiles, for numba to compile."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from mlirt.codegen.launch_comments import launch_comments
from mlirt.codegen.numba_cpu.kernel_source import KernelSource, import_line, kernel_source
from mlirt.dialects.kernel.core import FuncOp


def emit(module: ModuleOp) -> str:
    """The text of all kernels of a module, each behind a comment that names its layers."""
    comments = launch_comments(module)
    functions = "\n\n\n".join(
        comments.get(func.sym_name.data, "") + "\n\n\n".join(KernelSource(func).functions())
        for func in _kernels(module)
    )
    return f"{import_line(functions)}\n\n\n{functions}\n"


def sources_of(module: ModuleOp) -> dict[str, str]:
    """For each kernel of a module the text of a Python module that defines it, and nothing else."""
    return {func.sym_name.data: kernel_source(func) for func in _kernels(module)}


def _kernels(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, FuncOp)]


__all__ = ["emit", "kernel_source", "sources_of"]
