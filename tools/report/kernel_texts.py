"""Each kernel in two forms: the kernel dialect, and the Python source that is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirt.errors import CompileError

if TYPE_CHECKING:
    from mlirt.dialects.kernel.core import FuncOp


@dataclass(frozen=True)
class KernelText:
    """IR and source of a kernel; a form that nobody has is empty."""

    ir: str = ""
    source: str = ""


def kernel_texts(kernels: Sequence[FuncOp], target: str) -> dict[str, KernelText]:
    """The texts of kernels after the phase `memory`, by name."""
    return {op.sym_name.data: KernelText(str(op), _source(op, target)) for op in kernels}


def _source(op: FuncOp, target: str) -> str:
    try:
        if target == "cuda":
            from mlirt.codegen.numba_cuda.kernel_source import emit_kernel

            return emit_kernel(op).text
        from mlirt.codegen.numba_cpu import kernel_source

        return kernel_source(op)
    except CompileError as error:
        return f"# there is no source: {error}"
