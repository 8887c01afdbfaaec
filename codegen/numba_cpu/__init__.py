"""The source of CPU kernels: explicit vectors and register tiles, for numba to compile."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from mlirt.codegen.numba_cpu.kernel_source import KernelSource, import_line, kernel_source
from mlirt.dialects.kernel.core import FuncOp


def emit(module: ModuleOp) -> str:
    """The text of all kernels of a module."""
    functions = "\n\n\n".join(text for func in _kernels(module) for text in KernelSource(func).functions())
    return f"{import_line(functions)}\n\n\n{functions}\n"


def sources_of(module: ModuleOp) -> dict[str, str]:
    """For each kernel of a module the text of a Python module that defines it, and nothing else."""
    return {func.sym_name.data: kernel_source(func) for func in _kernels(module)}


def _kernels(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, FuncOp)]


__all__ = ["emit", "kernel_source", "sources_of"]
