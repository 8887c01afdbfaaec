"""Kernels compile in processes of their own, once; what numba refuses is an error that names the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_kernel_runs import CpuKernel, compile_module, kernels_in, widths

from mlirt.builder import numba_cpu
from mlirt.builder.host import cpu_target
from mlirt.builder.numba_cpu import compile_kernels
from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.errors import CompileError

_SOURCE = """from mlirt.builder.numba_cpu_intrinsics import float32, float32_pointer, share


def fill(params, worker, workers):
    y = float32_pointer(params[0])
    first, last = share(params[1], worker, workers)
    for i in range(first, last):
        y[i] = float32(i + 100 * worker)
"""


def test_workers_share_the_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    steps: list[tuple[int, int]] = []
    code = compile_kernels({"fill": _SOURCE}, cpu_target(), lambda _, done, total: steps.append((done, total)))["fill"]
    assert steps[0] == (0, 1)
    assert steps[-1] == (1, 1)
    kernel = CpuKernel(code, "fill")
    y = np.zeros(5, np.float32)
    kernel(y, 5)
    assert y.tolist() == [0, 1, 102, 103, 104]
    kernel(y, 5, workers=9)
    assert y.tolist() == [100, 301, 502, 703, 804]


def test_a_known_kernel_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    code = compile_kernels({"fill": _SOURCE}, cpu_target())

    def refuse(*_: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(numba_cpu, "_compile", refuse)
    assert compile_kernels({"fill": _SOURCE}, cpu_target()) == code


def test_a_build_that_ends_early_keeps_what_it_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    monkeypatch.setenv("MLIRT_JOBS", "1")
    broken = "def broken(params, worker, workers):\n    params[0] = worker.nothing\n"  # shorter: it is compiled last
    with pytest.raises(CompileError, match="kernel broken"):
        compile_kernels({"fill": _SOURCE, "broken": broken}, cpu_target())

    def refuse(*_: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(numba_cpu, "_compile", refuse)
    assert compile_kernels({"fill": _SOURCE}, cpu_target())


def test_two_kernels_of_one_source_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    source = _SOURCE + "\n\ndef clear(params, worker, workers):\n    float32_pointer(params[0])[0] = float32(-1)\n"
    for _ in range(2):
        codes = compile_kernels({"fill": source, "clear": source}, cpu_target())
        y = np.zeros(1, np.float32)
        CpuKernel(codes["fill"], "fill")(y, 1)
        assert y.tolist() == [100]
        CpuKernel(codes["clear"], "clear")(y)
        assert y.tolist() == [-1]


def test_what_numba_refuses_names_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", "off")
    with pytest.raises(CompileError, match="kernel broken: numba refuses the generated source: ") as caught:
        compile_kernels(
            {"broken": "def broken(params, worker, workers):\n    params[0] = worker.nothing\n"}, cpu_target()
        )
    assert "\n" not in str(caught.value)


_REDUCTIONS = """
kernel.func @reductions(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  kernel.parallel (%n) attributes {workers} {
  ^bb0(%i: index):
    %sum = kernel.reduce add (%m) init %half attributes {lanes = LANES : i64} : f32 -> f32 {
    ^bb0(%j: index):
      %v = kernel.load %x [%i, %j] strides [%m, 1] : memref<?xf32> -> f32
      kernel.yield %v : f32
    }
    %most = kernel.reduce max (%m) init %zero attributes {lanes = LANES : i64} : f32 -> f32 {
    ^bb0(%j: index):
      %v = kernel.load %x [%i, %j] strides [%m, 1] : memref<?xf32> -> f32
      %w = math.absf %v : f32
      kernel.yield %w : f32
    }
    kernel.parallel (%m) attributes {lanes = LANES : i64} {
    ^bb0(%j: index):
      %v = kernel.load %x [%j, %i] strides [%n, 1] : memref<?xf32> -> f32
      %a = arith.mulf %v, %most : f32
      %c = arith.cmpf ogt, %v, %zero : f32
      %b = arith.select %c, %a, %sum : f32
      kernel.store %b, %y [%i, %j] strides [%m, 1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}
"""


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize(("n", "m"), [(3, 1), (5, 16), (2, 33), (0, 4), (4, 50)])
def test_lanes_give_what_the_interpreter_gives(bits: int, n: int, m: int) -> None:
    text = _REDUCTIONS.replace("LANES", str(bits // 32))
    kernel = compile_module(text, bits)["reductions"]
    x = np.random.default_rng(n * m).standard_normal((n, m)).astype(np.float32)
    want, got = np.zeros_like(x), np.full_like(x, 9)
    run_kernel(kernels_in(text)[0], [x, want, n, m])
    kernel(x, got, n, m)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
