"""Kernels are compiled as they come, each once, and failures are left out."""

from __future__ import annotations

import pytest
from fake_timer import without_compiler

from mlirt.builder.tactics.early_compiler import EarlyCompiler
from mlirt.codegen.numba_cuda.kernel_text import KernelSource


def kernel(name: str, threads: int = 32) -> dict[str, KernelSource]:
    return {name: KernelSource(name, f"def {name}(): pass", (), threads, 0)}


def test_all_that_was_taken_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch, lambda source: source.threads == 1024)
    with EarlyCompiler("sm_90a") as compiler:
        for sources in (kernel("a"), kernel("b") | kernel("a"), {}, kernel("large", 1024)):
            compiler.take(sources)
        assert set(compiler.finish()) == {"a", "b"}


def test_nothing_is_nothing() -> None:
    with EarlyCompiler("sm_90a") as compiler:
        assert compiler.finish() == {}
