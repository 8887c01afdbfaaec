"""The kernel that kernel functions write to: the words of the language append to it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from xdsl.ir import Operation

from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language.errors import KernelLanguageError
from mlirt.kernels.lib.language.values import Value, value_of

P = ParamSpec("P")
R = TypeVar("R")
_BUILDER: ContextVar[KernelBuilder | None] = ContextVar("the kernel that is being read", default=None)


def build(k: KernelBuilder, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Read a kernel function as code at the end of the innermost open block of a kernel; returns what it returns."""
    token = _BUILDER.set(k)
    try:
        return function(*args, **kwargs)
    finally:
        _BUILDER.reset(token)


def builder() -> KernelBuilder:
    """The kernel that is being read; words of the language append to it."""
    k = _BUILDER.get()
    if k is None:
        raise KernelLanguageError(
            "expected `build(k, function, ..)` around a call of a kernel function: it is read, not run"
        )
    return k


def emit(op: Operation) -> Value:
    """Append an op with one result, and give that."""
    return value_of(builder().value(op))
