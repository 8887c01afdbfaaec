"""The source of CPU kernels: explicit vectors and register tiles, for numba to compile."""

from xdsl.dialects.builtin import ModuleOp

from mlirt.codegen.numba_cpu.kernel_source import KernelSource, import_line, kernel_source
from mlirt.dialects.kernel.core import FuncOp

__all__ = ["emit", "kernel_source"]


def emit(module: ModuleOp) -> str:
    """The text of all kernels of a module."""
    kernels = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    functions = "\n\n\n".join(text for func in kernels for text in KernelSource(func).functions())
    return f"{import_line(functions)}\n\n\n{functions}\n"
