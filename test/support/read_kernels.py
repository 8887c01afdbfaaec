"""Kernel functions outside of a network: read into a kernel of their own, and run on arrays."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, IndexType, MemRefType, ModuleOp, f32
from xdsl.ir import Attribute, Block

from mlirt.dialects.context import RtContext
from mlirt.dialects.ir_printer import IrPrinter
from mlirt.dialects.kernel.core import FuncOp, ReturnOp
from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.dialects.target import Target, TargetKind
from mlirt.kernels.lib.language import build
from mlirt.kernels.lib.tactics.lowering import Lowering

INDEX = IndexType()
MEMORY = MemRefType(f32, [DYNAMIC_INDEX])


def read(function: Callable[..., Any], *types: Attribute, target: TargetKind = "cpu", **known: Any) -> FuncOp:
    """The kernel that a kernel function of arguments of these types becomes; `known` are its other arguments."""
    lowering = Lowering(Target(target), RtContext(), ModuleOp([]), Block())
    k = lowering.kernel("test")
    block = k.function.body.block
    build(k, function, *(block.insert_arg(type_, place) for place, type_ in enumerate(types)), **known)
    k.insert(ReturnOp())
    k.forget_names()
    k.function.properties["function_type"] = FunctionType.from_lists([one.type for one in block.args], [])
    k.function.verify()
    return k.function


def text_of(function: FuncOp) -> str:
    """The lines of a kernel's body, without indents."""
    stream = StringIO()
    IrPrinter(stream=stream).print_op(function)
    return "\n".join(line.strip() for line in stream.getvalue().splitlines()[1:-2])


def run(function: FuncOp, *arguments: Any) -> None:
    """Run a kernel on arrays and numbers; what it stores to is changed in place."""
    updated = [place for place, one in enumerate(arguments) if not isinstance(one, int | float)]
    run_kernel(function, list(arguments), updated=updated)


__all__ = ["INDEX", "MEMORY", "read", "run", "text_of"]
