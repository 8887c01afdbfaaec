"""numba translates CPU kernels to LLVM IR, and this process neither optimises them twice nor can run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from mlirt.builder.numba_cpu_compiler import assembly, compile_kernel
from mlirt.builder.numba_object_codegen import object_target

_SOURCE = """from mlirt.builder.numba_cpu_intrinsics import (
    float32, float32_pointer, inlined, store, tile_fill, tile_for_each
)


@inlined
def finish(v, i, j, y):
    store(y, (i * 2 + j) * 4, v)


def fill(params, worker, workers):
    y = float32_pointer(params[0])
    tile_for_each(tile_fill(float32(1.5), 2, 2, 4), finish, (y,))
"""


def test_no_machine_code_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a function optimised that is a part of a kernel: nothing of numba's steps towards running is called."""
    codegen: Any = import_module("numba.core.codegen")
    compile_kernel(_SOURCE, "fill")  # the first kernel of a process brings in what numba makes once
    calls = Counter[str]()
    steps = {
        codegen.JitEngine: ("add_module", "finalize_object", "get_function_address", "get_global_value_address"),
        codegen.CPUCodeLibrary: ("_optimize_final_module",),
        codegen.JITCodeLibrary: ("_finalize_specific",),
    }
    for owner, names in steps.items():
        for name in names:
            monkeypatch.setattr(owner, name, _counted(calls, name, getattr(owner, name)))
    assert compile_kernel(_SOURCE, "fill")
    assert calls == {}


def test_subroutines_are_written_into_the_kernel() -> None:
    text = assembly(_SOURCE, "fill")
    assert "finish" not in text
    assert "call" not in text


def test_a_numba_without_these_steps_compiles_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    codegen: Any = import_module("numba.core.codegen")
    usual = import_module("numba.core.registry").cpu_target.target_context
    monkeypatch.delattr(codegen, "JITCodeLibrary")
    assert object_target.__wrapped__() is usual


def _counted(calls: Counter[str], name: str, step: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        calls[name] += 1
        return step(*arguments)

    return call
