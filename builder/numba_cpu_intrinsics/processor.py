"""What the processor that code is made for can do, as numba was told."""

from __future__ import annotations

from functools import cache
from importlib import import_module


@cache
def has_feature(name: str) -> bool:
    """Whether code may use the instructions that LLVM knows by this name, such as `avx512f`."""
    registry = import_module("numba.core.registry")
    return f"+{name}" in registry.cpu_target.target_context.codegen()._get_host_cpu_features().split(",")
