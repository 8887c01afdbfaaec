"""Kernels from their text, for tests."""

from __future__ import annotations

from xdsl.parser import Parser

from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.registry import register_dialects


def parse_kernel(text: str) -> FuncOp:
    """The only kernel in a module's text, verified."""
    context = RtContext()
    register_dialects(context)
    module = Parser(context, text).parse_module()
    module.verify()
    (kernel,) = [op for op in module.walk() if isinstance(op, FuncOp)]
    return kernel


__all__ = ["parse_kernel"]
