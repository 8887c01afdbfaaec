"""Writes kernels for NVIDIA GPUs as Python source for numba-cuda."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def emit(module: ModuleOp) -> str:
    """All mapped kernels of a module as one Python file; raises `CompileError` for one that is not mapped."""
    from mlirt.codegen.numba_cuda.kernel_source import emit_module  # the compiler's processes need no IR

    return emit_module(module)
