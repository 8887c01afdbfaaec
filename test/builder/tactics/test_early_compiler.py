"""Kernels are compiled as they come, each once, and failures are left out."""

from __future__ import annotations

import pytest
from fake_timer import without_compiler

from mlirt.builder.tactics.early_compiler import EarlyCompiler
from mlirt.codegen.numba_cuda.kernel_text import KernelSource


def kernel(name: str, threads: int = 32, text: str = "pass") -> KernelSource:
    return KernelSource(name, f"def {name}(): {text}", (), threads, 0)


def test_all_that_was_taken_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch, lambda source: source.threads == 1024)
    with EarlyCompiler("sm_90a") as compiler:
        for sources in ([kernel("a")], [kernel("b"), kernel("a")], [], [kernel("large", 1024)]):
            compiler.take(sources)
        assert set(compiler.finish()) == {kernel("a"), kernel("b")}


def test_kernels_of_one_name_are_told_apart_by_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernel is mapped to threads as the sizes of its layer allow: each layer is measured with its own."""
    compiled: list[str] = []

    def note(source: KernelSource) -> bool:
        compiled.append(source.text)
        return False

    without_compiler(monkeypatch, note)
    wide, narrow = kernel("sum", text="wide"), kernel("sum", text="narrow")
    with EarlyCompiler("sm_90a") as compiler:
        compiler.take([wide, narrow])
        compiler.take([narrow, wide])
        assert set(compiler.finish()) == {wide, narrow}
    assert sorted(compiled) == sorted([wide.text, narrow.text])


def test_nothing_is_nothing() -> None:
    with EarlyCompiler("sm_90a") as compiler:
        assert compiler.finish() == {}
