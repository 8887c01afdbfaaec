"""Runs kernels on the CPU of this machine without a runtime: source or IR in, arrays changed in place."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
from xdsl.parser import Parser

from mlirt.builder.host import cpu_target
from mlirt.builder.numba_cpu import compile_kernels
from mlirt.codegen.numba_cpu import sources_of
from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.registry import register_dialects
from mlirt.runtime.host_cpu import allow_matrix_unit

Argument = "np.ndarray[Any, Any] | int | float"


class CpuKernel:
    """A compiled kernel; call it with arrays, whole numbers and floats in the order of its arguments."""

    def __init__(self, code: bytes, name: str) -> None:
        binding: Any = llvm
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        binding.load_library_permanently("libm.so.6")
        machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        address = self._engine.get_function_address(name)
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)

    def __call__(self, *arguments: Any, workers: int = 2) -> None:
        words = np.array([_word(argument) for argument in arguments], np.int64)
        for worker in range(workers):
            self._call(words.ctypes.data, worker, workers)


def _word(argument: Any) -> int:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    if isinstance(argument, float):
        return int(np.float64(argument).view(np.int64))
    return int(argument)


def compile_sources(
    sources: dict[str, str], vector_bits: int | None = None, has_special: bool = False
) -> dict[str, CpuKernel]:
    """The kernels that texts define, by name; with `has_special` for all features that this machine has for some."""
    target = cpu_target(vector_bits)
    if has_special:
        allow_matrix_unit(target.special)
    objects = compile_kernels(
        sources, replace(target, features=target.features | target.special) if has_special else target
    )
    return {name: CpuKernel(code, name) for name, code in objects.items()}


def compile_module(text: str, vector_bits: int | None = None) -> dict[str, CpuKernel]:
    """The kernels of a module in the kernel dialect."""
    ctx = RtContext()
    register_dialects(ctx)
    return compile_sources(sources_of(Parser(ctx, text).parse_module()), vector_bits)


def kernels_in(text: str) -> Sequence[FuncOp]:
    """The kernels of a module, to interpret them."""
    ctx = RtContext()
    register_dialects(ctx)
    return [op for op in Parser(ctx, text).parse_module().ops if isinstance(op, FuncOp)]


def widths() -> list[int]:
    """The vector widths that this machine has."""
    return [bits for bits in (512, 256, 128) if bits <= cpu_target().vector_bits]


MAX_WIDTH = widths()[0]
"""The widest vectors that this machine has."""
