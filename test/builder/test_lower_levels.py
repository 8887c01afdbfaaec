"""Processors without instructions for fused operations and rounding: no calls in loops, the same numbers."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from cpu_kernel_runs import CpuKernel
from onnx_models import Array, one_node, run_reference

import mlirt
from mlirt.builder.device_choice import asking
from mlirt.builder.host import cpu_target
from mlirt.builder.numba_cpu import compile_kernels
from mlirt.dialects.processor_files import read_processor
from mlirt.runtime.elf_sections import read_object
from mlirt.runtime.elf_symbols import read_symbols
from mlirt.runtime.host_cpu import host_architecture, host_features

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "armv8-a")
RUN_HERE = [
    name
    for name in LEVELS
    if read_processor(name).architecture == host_architecture()
    and host_features().issuperset(read_processor(name).features)
]
ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint}
FUNCTIONS = (
    *("exp", "exp2", "log", "log2", "tanh", "erf", "expm1", "log1p", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("asin", "acos", "atan", "sin", "cos", "tan", "sqrt", "rsqrt", "cbrt", "round", *ROUNDINGS),
)
RARE = frozenset({"sin", "cos", "tan", "fmod", "pow", "fma"})
"""The library's functions behind branches that usual numbers do not take."""
HEADER = "from mlirt.builder.numba_cpu_intrinsics import *\n\n\n"


def row_by_row(name: str, functions: tuple[str, ...], element: str, lanes: int) -> str:
    """A kernel that writes each function of `x` to a row of `y`, and behind them the remainder of `x` by `z`, and
    `x * z + w`.
    """
    calls = [f"{function}(v)" for function in functions] + ["remainder(v, u)", "fma(v, u, t)"]
    lines = [f"def {name}(params, worker, workers):", "    n = params[4]"]
    for number, variable in enumerate("xzw"):
        lines.append(f"    {variable} = const_{element}_pointer(params[{number}])")
    lines += [f"    y = {element}_pointer(params[3])", f"    for i in range(0, n, {lanes}):"]
    loads = zip("vut", "xzw", strict=True)
    lines += [f"        {value} = load({memory}, i, {lanes})" for value, memory in loads]
    lines += [f"        store(y, {row} * n + i, {call})" for row, call in enumerate(calls)]
    return HEADER + "\n".join(lines) + "\n"


def pairs(name: str, element: str, lanes: int) -> str:
    """A kernel that writes the power of `x` by `z` and the angle of the point (z, x)."""
    lines = [f"def {name}(params, worker, workers):", "    n = params[4]"]
    lines += [f"    {memory} = const_{element}_pointer(params[{number}])" for number, memory in enumerate("xz")]
    lines += [f"    y = {element}_pointer(params[3])", f"    for i in range(0, n, {lanes}):"]
    lines += [f"        v, u = load(x, i, {lanes}), load(z, i, {lanes})"]
    lines += ["        store(y, i, power(v, u))", "        store(y, n + i, atan2(v, u))"]
    return HEADER + "\n".join(lines) + "\n"


@cache
def objects(level: str) -> Mapping[str, bytes]:
    sources = {
        "functions": row_by_row("functions", FUNCTIONS, "float32", 8),
        "wide": row_by_row("wide", (*FUNCTIONS, "log10"), "float64", 4),
        "pairs": pairs("pairs", "float64", 4),
    }
    with asking(None, level):
        return compile_kernels(sources, cpu_target())


@pytest.mark.parametrize("level", LEVELS)
def test_loops_call_nothing(level: str) -> None:
    machine = read_processor(level).architecture
    for name, code in objects(level).items():
        called = read_symbols(read_object(memoryview(code), name, machine)).undefined
        assert called <= RARE | {"_GLOBAL_OFFSET_TABLE_"}


def computed(level: str, name: str, rows: int, x: Array, z: Array, w: Array) -> Array:
    y = np.zeros((rows, len(x)), x.dtype)
    CpuKernel(objects(level)[name], name)(x, z, w, y, len(x), workers=1)
    return y


def float32s(count: int, seed: int) -> Array:
    """Numbers of all sizes, with the special ones among them."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    found[: count // 2] = rng.uniform(-40, 40, count // 2)
    ends = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 0.49999997, 8388607.5, 8388608, -8388609, np.inf, -np.inf, np.nan, 1e-40]
    found[: len(ends)] = ends
    return found


@pytest.mark.parametrize("level", RUN_HERE)
def test_rounding_has_the_bits_of_numpy(level: str) -> None:
    x = float32s(1 << 12, 0)
    x[x.view(np.uint32) & 0x7FC00000 == 0x7F800000] = np.nan  # signalling ones, which NumPy warns of
    y = computed(level, "functions", len(FUNCTIONS) + 2, x, x, x)
    z = np.concatenate([x[:2048].astype(np.float64), np.random.default_rng(1).normal(size=2048) * 2.0**52])
    wide = computed(level, "wide", len(FUNCTIONS) + 3, z, z, z)
    for name, function in ROUNDINGS.items():
        assert _same_bits(y[FUNCTIONS.index(name)], function(x)), name
        assert _same_bits(wide[FUNCTIONS.index(name)], function(z)), name
    for found, given in ((one[FUNCTIONS.index("round")], given) for one, given in ((y, x), (wide, z))):
        with np.errstate(invalid="ignore"):
            below = np.trunc(np.abs(given))
            away = np.copysign(below + (np.abs(given) - below >= 0.5), given).astype(given.dtype)
        away = np.where(np.isfinite(given), away, given)
        assert _same_bits(found, away)


def _same_bits(found: Array, want: Array) -> bool:
    word = np.uint32 if found.dtype == np.float32 else np.uint64
    is_number = ~np.isnan(want)
    same = found[is_number].view(word) == want[is_number].view(word)
    return bool(same.all() and np.isnan(found[~is_number]).all())


@pytest.mark.parametrize("level", RUN_HERE)
def test_fused_operations_are_rounded_once(level: str) -> None:
    libm: Any = ctypes.CDLL("libm.so.6").fmaf
    libm.restype, libm.argtypes = ctypes.c_float, [ctypes.c_float] * 3
    rng = np.random.default_rng(2)
    x, z = float32s(1 << 12, 3), float32s(1 << 12, 4)
    with np.errstate(all="ignore"):
        w = np.where(
            rng.random(1 << 12) < 0.7, -(x * z) * (1 + rng.integers(-2, 3, 1 << 12) * 2.0**-23), float32s(1 << 12, 5)
        )
    w = w.astype(np.float32)
    y = computed(level, "functions", len(FUNCTIONS) + 2, x, z, w)
    want = np.array([libm(*three) for three in zip(x.tolist(), z.tolist(), w.tolist(), strict=True)], np.float32)
    assert _same_bits(y[-1], want)


def doubles(count: int, seed: int) -> Array:
    """Numbers of all sizes, with the special ones among them."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    found[found.view(np.uint64) & 0x7FF8000000000000 == 0x7FF0000000000000] = np.nan  # signalling ones: NumPy warns
    found[: count // 2] = rng.uniform(-40, 40, count // 2)
    ends = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -3.0, 1e7, -1e9, np.inf, -np.inf, np.nan, 1e-310, -1e-310, 1e308, -1e308]
    found[: len(ends)] = ends
    return found


@pytest.mark.parametrize("level", RUN_HERE)
def test_fused_operations_of_float64_are_rounded_once(level: str) -> None:
    libm: Any = ctypes.CDLL("libm.so.6").fma
    libm.restype, libm.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    rng = np.random.default_rng(12)
    x, z = doubles(1 << 12, 13), doubles(1 << 12, 14)
    with np.errstate(all="ignore"):
        w = -(x * z) * (1 + rng.integers(-2, 3, 1 << 12) * 2.0**-52)
        w = np.where(rng.random(1 << 12) < 0.7, w, doubles(1 << 12, 15))
    y = computed(level, "wide", len(FUNCTIONS) + 3, x, z, w)
    want = np.array([libm(*three) for three in zip(x.tolist(), z.tolist(), w.tolist(), strict=True)])
    assert _same_bits(y[-1], want)
    with np.errstate(all="ignore"):
        assert _same_bits(y[-2], np.fmod(x, z))


def _arc_numbers(name: str, x: Array) -> Array:
    return np.clip(x, 1, None) if name == "acosh" else np.clip(x, -1, 1) if name in ("asin", "acos", "atanh") else x


@pytest.mark.parametrize("level", RUN_HERE)
def test_functions_of_float64_are_accurate(level: str) -> None:
    """Within 5 units in the last place of what NumPy has with more digits, and the same at the ends."""
    names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
    names |= {f"a{name}h": f"arc{name}h" for name in ("sin", "cos", "tan")}
    rng = np.random.default_rng(16)
    for name in (*FUNCTIONS, "log10"):
        if name in ("erf", "rsqrt", "round", *ROUNDINGS):
            continue
        x = doubles(1 << 12, 17)
        x[1 << 11 :: 2] = rng.uniform(-1, 1, 1 << 10) * 10.0 ** rng.uniform(-12, 1, 1 << 10)
        if name in ("sin", "cos", "tan"):
            # NumPy's longer numbers lose what is left of large angles.
            x = np.where(np.abs(x) < 1e5, x, rng.uniform(-7, 7, 1 << 12))
        x = _arc_numbers(name, x)
        y = computed(level, "wide", len(FUNCTIONS) + 3, x, x, x)[[*FUNCTIONS, "log10"].index(name)]
        _check_digits(y, getattr(np, names.get(name, name)), name, x)


@pytest.mark.parametrize("level", RUN_HERE)
def test_errors_of_float64_are_accurate(level: str) -> None:
    x = np.concatenate([np.linspace(-7, 7, 4089), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300, 1e9]])
    y = computed(level, "wide", len(FUNCTIONS) + 3, x, x, x)[FUNCTIONS.index("erf")]
    np.testing.assert_allclose(y, [math.erf(one) for one in x.tolist()], rtol=8e-16)


@pytest.mark.parametrize("level", RUN_HERE)
def test_powers_and_angles_of_float64_are_accurate(level: str) -> None:
    rng = np.random.default_rng(18)
    ends = doubles(16, 0)
    first, second = (part.ravel() for part in np.meshgrid(ends, ends))
    x = np.concatenate([rng.uniform(0, 30, 2048), 10.0 ** rng.uniform(-200, 200, 2048), first])
    z = np.concatenate([rng.uniform(-200, 200, 2048), rng.uniform(-1.5, 1.5, 2048), second])
    y = computed(level, "pairs", 2, x, z, x)
    _check_digits(y[0], np.power, "power", x, z)
    _check_digits(y[1], np.arctan2, "atan2", x, z)


def _check_digits(found: Array, reference: Any, name: str, *given: Array) -> None:
    with np.errstate(all="ignore"):
        exact = reference(*(one.astype(np.longdouble) for one in given))
        want = exact.astype(np.float64)
        plain = np.isfinite(want) & (np.abs(want) >= np.finfo(np.float64).tiny)
        off = np.abs(found[plain] - exact[plain]) / np.spacing(np.abs(want[plain]))
    assert off.max() < 5, (name, off.max(), [one[plain][off.argmax()] for one in given])
    np.testing.assert_allclose(found[~plain], want[~plain], atol=2e-323, err_msg=name)
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(want[zeros]), err_msg=name)


@pytest.mark.parametrize("level", RUN_HERE)
def test_remainders_are_exact(level: str) -> None:
    x, z = float32s(1 << 12, 6), float32s(1 << 12, 7)
    y = computed(level, "functions", len(FUNCTIONS) + 2, x, z, x)
    with np.errstate(all="ignore"):
        assert _same_bits(y[-2], np.fmod(x, z))


@pytest.mark.parametrize("level", RUN_HERE)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "cos", "tan", "expm1", "log1p", "atan", "sinh"])
def test_functions_are_as_accurate_as_with_fused_operations(level: str, name: str) -> None:
    from mlirt.dialects.special_functions import erf

    rng = np.random.default_rng(8)
    x = rng.uniform(0.01, 30, 1 << 12).astype(np.float32)
    if name in ("sin", "cos", "tan"):
        x[: 1 << 11] = (np.arange(1 << 11) * 1e6 + 0.3).astype(np.float32)
    reference: Any = {"atan": np.arctan, "erf": erf}.get(name) or getattr(np, name)
    want = reference(x.astype(np.float64))
    y = computed(level, "functions", len(FUNCTIONS) + 2, x, x, x)[FUNCTIONS.index(name)]
    off = np.abs(y - want) / (np.maximum(np.abs(want), 1.0) if name in ("sin", "cos") else np.abs(want))
    assert off.max() < 6e-7


@pytest.mark.parametrize("level", [name for name in RUN_HERE if name != "x86-64-v3"])
def test_layers_run_on_lower_levels(level: str) -> None:
    x = np.linspace(-9, 9, 77, dtype=np.float32).reshape(7, 11)
    for op in ("Round", "Floor", "Exp", "Tanh", "Gelu"):
        model, feeds = one_node(op, [x], opset=20)
        found = mlirt.compile(model, cpu=level).run(feeds)["out0"]
        np.testing.assert_allclose(found, run_reference(model, feeds)[0], rtol=1e-5, atol=1e-6)
