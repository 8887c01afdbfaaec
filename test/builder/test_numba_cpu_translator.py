"""Kernels that the package translates itself give the bits of those that numba translates."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from family_models import FAMILIES

import mlirt
from mlirt.builder import numba_cpu_compiler
from mlirt.builder.numba_cpu_translator import Unsupported

Array = np.ndarray[Any, Any]

_HEADER = """from mlirt.builder.numba_cpu_intrinsics import *

def k(params, worker, workers):
    x = const_float32_pointer(params[0])
    y = float32_pointer(params[1])
    n = params[2]
"""

_SOURCES = {
    "tasks of a worker": """
    first, last = share(n, worker, workers)
    for i in range(first, last):
        y[i] = x[i] * float32(2.0) + float32(i)
""",
    "changes of a loop's variable": """
    for i in range(0, n, 3):
        y[i] = x[i] - float32(n // 3)
        i += 100
""",
    "ways out of loops": """
    i = 0
    while True:
        if not i < n:
            break
        j = 0
        for j in range(n):
            if j % 2 == 1:
                continue
            if x[j] > x[i] and j > 3 or j == 20:
                break
            y[i] = y[i] + x[j]
        y[i] = y[i] + float32(j)
        i += 1
""",
    "names of several types": """
    for i in range(0, n - 15, 16):
        v = load(x, i, 16)
        store(y, i, v + v)
    for i in range(0, n - 3, 4):
        v = load(x, i, 4)
        v_1 = v * load(y, i, 4)
        store(y, i, exp(v_1) - v)
    rest = n % 4
    if rest > 0:
        v = load_first(x, n - rest, 4, rest)
        store_first(y, n - rest, -v, rest)
""",
    "several at once": """
    a, b, c = n // 7, n % 7, -3
    for _ in range(2):
        a, b = b, a
    pair = (a, b)
    y[0], y[1] = float32(pair[0]), float32(pair[1])
    y[2] = float32((a << 3) ^ (b | 5) & 6) + float32(~c >> 1)
    y[3] = select(a >= b, x[0], x[1])
""",
    "functions": """
    i = 0
    for i in range(n):
        y[i] = chosen(x[i], i) + chosen(-x[i], 1)

@inlined
def chosen(v, i):
    if i % 3 == 0:
        return v * float32(3.0)
    w = v + float32(i)
    return w
""",
    "vectors of a tile": """
    tile = tile_fill(float32(1.0), 2, 2, 8)
    tile = tile_multiply_add(tile, x, 0, 1, 1, x, 4, 2)
    tile_for_each(tile, written, (y, n))

@inlined
def written(v, i, j, y, n):
    store(y, (i * 2 + j) * 8, v + float32(n))
""",
}


def _run(code: bytes, x: Array) -> Array:
    binding: Any = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    y = np.zeros(64, np.float32)
    words = np.array([x.ctypes.data, y.ctypes.data, 37], np.int64)
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("k"))
    call(words.ctypes.data, 0, 1)
    return y


def _translated(source: str, name: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    with import_module("numba.core.compiler_lock").global_compiler_lock:
        return numba_cpu_compiler.translated_module(source, name, namespace)


def _refuse(*_: object) -> Any:
    raise Unsupported("for this test")


@pytest.mark.parametrize("case", _SOURCES)
def test_bits_are_those_of_numba(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=64).astype(np.float32)
    source = _HEADER + _SOURCES[case]
    with monkeypatch.context() as patch:
        patch.setattr(numba_cpu_compiler, "_translated_by_numba", _refuse)
        ours = _run(numba_cpu_compiler.compile_kernel(source, "k"), x)
    with monkeypatch.context() as patch:
        patch.setattr(numba_cpu_compiler, "translated", _refuse)
        theirs = _run(numba_cpu_compiler.compile_kernel(source, "k"), x)
    assert np.any(ours != 0)
    np.testing.assert_array_equal(ours, theirs)


_REFUSED = {
    "comparisons in a row": "    y[0] = float32(0 < n < 100)\n",
    "a type that depends on the way": "    v = x[0]\n    if n > 100:\n        v = n\n    y[0] = float32(v)\n",
    "a type that a loop changes": "    v = 1\n    for i in range(n):\n        y[i] = float32(v)\n        v = x[i]\n",
    "a type that a loop's condition reads": "    v = 1\n    while v < n:\n        v = float32(n)\n",
    "the variable of a loop that may have none": (
        "    v = x[0]\n    for v in range(n):\n        y[v] = x[v]\n    y[0] = float32(v)\n"
    ),
    "steps that are not known": "    for i in range(0, n, worker + 1):\n        y[i] = x[i]\n",
}


@pytest.mark.parametrize("case", _REFUSED)
def test_what_is_not_translated_is_left_to_numba(case: str) -> None:
    source = _HEADER + _REFUSED[case]
    assert _translated(source, "k") is None
    if case == "steps that are not known":
        x = np.arange(64, dtype=np.float32)
        np.testing.assert_array_equal(_run(numba_cpu_compiler.compile_kernel(source, "k"), x)[:37], x[:37])


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_of_every_family_are_translated(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources: dict[str, str] = {}

    def kept(found: dict[str, str], *rest: Any) -> dict[str, bytes]:
        sources.update(found)
        raise KeyboardInterrupt

    monkeypatch.setenv("MLIRT_CACHE", "off")
    monkeypatch.setattr("mlirt.builder.numba_cpu.compile_kernels", kept)
    with pytest.raises(KeyboardInterrupt):
        mlirt.compile(FAMILIES[family]()[0], "cpu")
    assert sources
    for name, source in sources.items():
        assert _translated(source, name) is not None, name


_IN_A_NEW_PROCESS = """
import sys
from mlirt.builder import numba_cpu_compiler
source = sys.stdin.read()
code = numba_cpu_compiler.compile_kernel(source, "k")
assert "numba.np.arraymath" not in sys.modules, "numba has loaded what it compiles of NumPy"
numba_cpu_compiler.translated_module = lambda *_: None
assert numba_cpu_compiler.compile_kernel(source, "k")
assert "numba.np.arraymath" in sys.modules
"""


def test_translation_loads_little_of_numba() -> None:
    """numba's own way, which needs the rest of it, is open behind that."""
    source = _HEADER + _SOURCES["tasks of a worker"]
    command = [sys.executable, "-c", _IN_A_NEW_PROCESS]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
