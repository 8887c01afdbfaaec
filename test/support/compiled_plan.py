"""Runs a lowered network with its kernels compiled for the CPU, every buffer in front of memory that traps."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np
from cpu_kernel_runs import CpuKernel, compile_sources
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirt.codegen.numba_cpu import sources_of
from mlirt.dialects.context import RtContext, weights_of
from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.kernel.worker import PARTS
from mlirt.dialects.plan.expression import Argument, ExpressionAttr
from mlirt.dialects.plan.ops import BufferOp, InputOp, LaunchOp, OutputOp, WeightOp
from mlirt.dialects.symbol_values import bind
from mlirt.dialects.symbolic import evaluate
from mlirt.dialects.tensor_types import dims, element_of, numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]
_PAGE = mmap.PAGESIZE


class GuardedMemory:
    """Bytes that end where a page begins that nobody may touch."""

    def __init__(self, size: int, fill: Array | None = None) -> None:
        pages = -(-max(size, 1) // _PAGE)
        self._mapping = mmap.mmap(-1, (pages + 1) * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + pages * _PAGE), ctypes.c_size_t(_PAGE), 0)
        self.bytes = np.frombuffer(self._mapping, np.uint8, size, pages * _PAGE - size)
        self.bytes[...] = 0xFF if fill is None else np.ascontiguousarray(fill).reshape(-1).view(np.uint8)
        self.address = start + pages * _PAGE - size


class CompiledPlan:
    """A module after `map-parallel-to-workers`; its kernels are compiled once and may run many times.

    With `has_special` they may use all that this machine has for kernels like them.
    """

    def __init__(
        self, module: ModuleOp, ctx: RtContext, vector_bits: int | None = None, has_special: bool = False
    ) -> None:
        self.function: FuncOp = entry_function(module)
        self.ctx = ctx
        self.kernels: dict[str, CpuKernel] = compile_sources(sources_of(module), vector_bits, has_special)

    def run(self, inputs: Mapping[str, Array], workers: int = 2) -> dict[str, Array]:
        """The outputs by name."""
        symbols: dict[str, int] = {PARTS: workers}
        memory: dict[SSAValue, GuardedMemory] = {}
        sources: dict[SSAValue, Array] = {}
        results: list[Array] = []
        for name, value in zip(input_names(self.function), self.function.body.block.args, strict=True):
            bind(value.type, inputs[name].shape, symbols, f"input {name!r}")
            sources[value] = inputs[name]
        for op in self.function.body.block.ops:
            if isinstance(op, InputOp):
                memory[op.buffer] = GuardedMemory(sources[op.source].nbytes, sources[op.source])
            elif isinstance(op, WeightOp):
                array = weights_of(self.ctx).get(op.value)
                memory[op.buffer] = GuardedMemory(array.nbytes, array)
            elif isinstance(op, BufferOp):
                size = evaluate(op.bytes.value(), symbols)
                border = None if op.halo is None else np.full(size, op.fill.value.data, np.uint8)
                memory[op.buffer] = GuardedMemory(size, border)
            elif isinstance(op, OutputOp):
                shape = [evaluate(dim, symbols) for dim in dims(op.result.type)]
                dtype = numpy_dtype(element_of(op.result.type))
                results.append(memory[op.buffer].bytes.view(dtype).reshape(shape).copy())
            elif isinstance(op, LaunchOp):
                arguments = [_argument(op, one, memory, symbols) for one in op.arguments()]
                self.kernels[op.kernel_name()](*arguments, workers=workers)
        return dict(zip(output_names(self.function), results, strict=True))


def _argument(
    op: LaunchOp, given: Argument, memory: Mapping[SSAValue, GuardedMemory], symbols: Mapping[str, int]
) -> int | float:
    if isinstance(given, ExpressionAttr):
        return evaluate(given.value(), symbols)
    if isinstance(given, FloatAttr):
        return float(given.value.data)
    return memory[op.buffers[given.operand.data]].address + evaluate(given.value(), symbols)


__all__ = ["CompiledPlan", "GuardedMemory"]
