"""Loops whose iterations are lanes of vectors from the start: neighbours along a row of memory on a CPU."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import ParallelOp, YieldOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder


def along_row(k: KernelBuilder, extent: SSAValue, lanes: int, body: Callable[[SSAValue], None]) -> None:
    """`body(lane)` for so many neighbours."""
    loop = ParallelOp([extent])
    loop.attributes["lanes"] = IntegerAttr(lanes, i64)
    with k.inside(loop.body.block):
        body(loop.body.block.args[0])
        k.insert(YieldOp(operands=[[]]))
    k.insert(loop)


__all__ = ["along_row"]
