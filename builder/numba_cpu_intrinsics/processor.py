"""What the processor that code is made for can do; it need not be the one that this process runs on."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from mlirt.builder.code_processor import CodeProcessor


@cache
def code_processor() -> CodeProcessor:
    """The one that this process was told; where nobody said, what numba finds here."""
    told = CodeProcessor.told()
    if told is not None:
        return told
    codegen = import_module("numba.core.registry").cpu_target.target_context.codegen()
    triple = import_module("llvmlite.binding").get_process_triple()
    return CodeProcessor(triple, codegen._get_host_cpu_name(), tuple(codegen._get_host_cpu_features().split(",")))


def has_feature(name: str) -> bool:
    """Whether code may use the instructions that LLVM knows by this name, such as `avx512f`."""
    return f"+{name}" in code_processor().features


def is_x86() -> bool:
    """Whether code is for the x86-64 architecture, where instructions for much of arithmetic are features."""
    return code_processor().architecture == "x86_64"


def has_fused_operations() -> bool:
    """Whether there is an instruction for multiplication with addition; LLVM calls functions for it where not."""
    return has_feature("fma") or not is_x86()


def has_rounding() -> bool:
    """Whether there are instructions that round to whole numbers; LLVM calls functions where not."""
    return not is_x86() or any(has_feature(name) for name in ("sse4.1", "sse4.2", "avx2"))
