"""The words of generated CPU source mean what they should, on vectors of every width and on scalars."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cpu_kernel_runs import CpuKernel, compile_sources, widths

from mlirt.builder import numba_cpu_intrinsics
from mlirt.codegen.numba_cpu.vocabulary import VOCABULARY
from mlirt.dialects.special_functions import erf

Array = np.ndarray[Any, Any]

_HEADER = "from mlirt.builder.numba_cpu_intrinsics import *\n\n\n"
# Function, reference in float64, and the range in which it is tried.
_UNARY: dict[str, tuple[Callable[[Array], Array], float, float]] = {
    "exp": (np.exp, -100, 88),
    "exp2": (np.exp2, -140, 127),
    "exp_as_summand": (np.exp, -85, 88.7),
    "log": (np.log, 1e-6, 1e6),
    "log2": (np.log2, 1e-6, 1e6),
    "log10": (np.log10, 1e-6, 1e6),
    "tanh": (np.tanh, -10, 10),
    "erf": (erf, -5, 5),
    "sin": (np.sin, -1000, 1000),
    "cos": (np.cos, -1000, 1000),
    "sqrt": (np.sqrt, 0, 1e6),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-3, 1e6),
    "expm1": (np.expm1, -3, 3),
    "log1p": (np.log1p, -0.9, 9),
    "cbrt": (np.cbrt, -30, 30),
    "tan": (np.tan, -1.5, 1.5),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -20, 20),
    "sinh": (np.sinh, -9, 9),
    "cosh": (np.cosh, -9, 9),
    "asinh": (np.arcsinh, -30, 30),
    "acosh": (np.arccosh, 1, 30),
    "atanh": (np.arctanh, -0.99, 0.99),
    "floor": (np.floor, -9, 9),
    "ceil": (np.ceil, -9, 9),
    "trunc": (np.trunc, -9, 9),
    "roundeven": (np.rint, -9, 9),
    "absolute": (np.abs, -9, 9),
}


def _elementwise(element: str, lanes: int) -> str:
    """A kernel that writes every function of `_UNARY` of `n` elements, one row for each."""
    lines = [
        f"def functions_{element}_{lanes}(params, worker, workers):",
        f"    x = const_{element}_pointer(params[0])",
        f"    y = {element}_pointer(params[1])",
        "    n = params[2]",
    ]
    for row, name in enumerate(_UNARY):
        if lanes:
            lines += [f"    for i in range(0, n, {lanes}):"]
            lines += [f"        store(y, {row} * n + i, {name}(load(x, {row} * n + i, {lanes})))"]
        else:
            lines += ["    for i in range(n):", f"        y[{row} * n + i] = {name}(x[{row} * n + i])"]
    return _HEADER + "\n".join(lines) + "\n"


def _inputs(dtype: str, count: int) -> Array:
    rng = np.random.default_rng(0)
    return np.stack([np.sort(rng.uniform(low, high, count)) for _, low, high in _UNARY.values()]).astype(dtype)


@pytest.fixture(scope="module")
def kernels() -> dict[str, CpuKernel]:
    sources = {
        f"functions_{element}_{lanes}": _elementwise(element, lanes)
        for element, lanes in (("float32", 16), ("float32", 4), ("float32", 0), ("float64", 8))
    }
    return compile_sources(sources)


@pytest.mark.parametrize(
    ("element", "lanes", "bound"),
    [("float32", 16, 6e-7), ("float32", 4, 6e-7), ("float32", 0, 6e-7), ("float64", 8, 1e-14)],
)
def test_elementary_functions(kernels: dict[str, CpuKernel], element: str, lanes: int, bound: float) -> None:
    x = _inputs(element, 1024)
    y = np.zeros_like(x)
    kernels[f"functions_{element}_{lanes}"](x, y, x.shape[1], workers=1)
    for row, (name, (reference, _, _)) in enumerate(_UNARY.items()):
        want = reference(x[row].astype(np.float64))
        error = np.abs(y[row] - want) / np.maximum(np.abs(want), 1.0 if name in ("sin", "cos", "tan") else 1e-30)
        assert error.max() < bound, f"{name}: {error.max()} at {x[row][error.argmax()]}"


def test_elementary_functions_at_their_ends(kernels: dict[str, CpuKernel]) -> None:
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, 200.0, -200.0] * 2, np.float32)
    x = np.tile(special, (len(_UNARY), 1))
    y = np.zeros_like(x)
    kernels["functions_float32_16"](x, y, x.shape[1], workers=1)
    rows = dict(zip(_UNARY, y, strict=True))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(rows["exp"], np.exp(special), rtol=1e-6)
        np.testing.assert_allclose(rows["exp_as_summand"], np.exp(special), rtol=1e-6, atol=2.0**-120)
        np.testing.assert_allclose(rows["exp2"], np.exp2(special), rtol=1e-6)
        np.testing.assert_allclose(rows["log"], np.log(special), rtol=1e-6)
        np.testing.assert_allclose(rows["tanh"], np.tanh(special), rtol=1e-6)
        np.testing.assert_allclose(rows["erf"], [math.erf(v) for v in special], rtol=1e-6, atol=1e-42)
        np.testing.assert_array_equal(np.isnan(rows["sin"]), np.isnan(np.sin(special)))
        np.testing.assert_array_equal(np.isnan(rows["tan"]), np.isnan(np.tan(special)))


_FURTHER = ("expm1", "log1p", "sinh", "cosh", "tan", "asinh", "acosh", "atanh", "asin", "acos", "atan")


def test_further_functions_for_numbers_of_all_sizes(kernels: dict[str, CpuKernel]) -> None:
    """Within 5 units in the last place wherever the result is a normal number, and what NumPy has at the ends."""
    rng = np.random.default_rng(1)
    sizes = 10.0 ** rng.uniform(-44, 38, 2000) * rng.choice((-1.0, 1.0), 2000)
    near = rng.uniform(-100, 100, 2000)
    ends = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 88.7, 89.4, 90.0, -18.0, -104.0], np.float32
    )
    numbers = np.concatenate([sizes, near, 1 + near * 1e-6, -1 + near * 1e-6, np.resize(ends, 16)]).astype(np.float32)
    x = np.tile(numbers, (len(_UNARY), 1))
    y = np.zeros_like(x)
    kernels["functions_float32_16"](x, y, x.shape[1], workers=1)
    with np.errstate(all="ignore"):
        for name, (reference, _, _) in _UNARY.items():
            if name not in _FURTHER:
                continue
            found = y[list(_UNARY).index(name)]
            exact = reference(numbers.astype(np.float64))
            want = exact.astype(np.float32)
            plain = np.isfinite(want) & np.isfinite(found) & (np.abs(want) >= np.finfo(np.float32).tiny)
            np.testing.assert_allclose(found[plain], exact[plain], rtol=6e-7, err_msg=name)
            # What is no normal number is the same one, but that the last step below infinity may be it.
            odd = ~plain & ~((np.abs(exact) > 3.4028e38) & (np.abs(found) > 3.4028e38))
            np.testing.assert_allclose(found[odd], want[odd], atol=2e-45, err_msg=name)
            zeros = odd & (want == 0) & (found == 0)
            np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(want[zeros]), err_msg=name)


def test_powers_of_all_numbers() -> None:
    """Within an ulp, of vectors of usual numbers and of those in which one lane is at an end."""
    lines = ["def powers(params, worker, workers):", "    x = const_float32_pointer(params[0])"]
    lines += ["    y = const_float32_pointer(params[1])", "    z = float32_pointer(params[2])"]
    lines += ["    for i in range(0, params[3], 8):", "        store(z, i, power(load(x, i, 8), load(y, i, 8)))"]
    rng = np.random.default_rng(2)
    ends = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 2.0, -2.5, 3.0, 1e30, 0.5, -3.0], np.float32)
    bases, exponents = (part.ravel() for part in np.meshgrid(ends, ends))
    x = np.concatenate([rng.uniform(0, 30, 4000), 10.0 ** rng.uniform(-37, 38, 4000), bases, bases[:4]])
    y = np.concatenate([rng.uniform(-20, 20, 4000), rng.uniform(-3, 3, 4000), exponents, exponents[:4]])
    x, y = x.astype(np.float32), y.astype(np.float32)
    found = np.zeros_like(x)
    assert x.size % 8 == 0
    compile_sources({"powers": _HEADER + "\n".join(lines) + "\n"})["powers"](x, y, found, x.size, workers=1)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) ** y.astype(np.float64)
        want = exact.astype(np.float32)
    normal = np.isfinite(want) & (np.abs(want) >= np.finfo(np.float32).tiny)
    np.testing.assert_allclose(found[normal], exact[normal], rtol=1.2e-7)
    np.testing.assert_allclose(found[~normal], want[~normal], atol=2e-45)


_EXPONENTS = (-3.0, -1.25, -1.0, -0.5, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 3.75, 4.0)


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except ValueError:
        is_odd = y % 2 == 1
        return math.copysign(math.inf, x if is_odd else 1.0) if x == 0 else math.nan


def test_powers_with_known_exponents() -> None:
    """Products of squares and roots mean what the power does, at its ends too."""
    lines = ["def powers(params, worker, workers):", "    x = const_float32_pointer(params[0])"]
    lines += ["    y = float32_pointer(params[1])"]
    for row, exponent in enumerate(_EXPONENTS):
        value = f"power_of_quarters(load(x, i, 16), {int(4 * exponent)})"
        lines += ["    for i in range(0, 64, 16):", f"        store(y, {64 * row} + i, {value})"]
    ends = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, -2.5]
    x = np.concatenate([np.geomspace(1e-3, 1e3, 56), ends]).astype(np.float32)
    y = np.zeros((len(_EXPONENTS), 64), np.float32)
    compile_sources({"powers": _HEADER + "\n".join(lines) + "\n"})["powers"](x, y, workers=1)
    for exponent, found in zip(_EXPONENTS, y, strict=True):
        # NumPy takes the square root for 0.5, even of minus infinity.
        want = np.array([_power(float(number), exponent) for number in x], np.float32)
        np.testing.assert_allclose(found, want, rtol=6e-7, err_msg=str(exponent))


_CONVERSIONS = (
    _HEADER
    + """
def conversions(params, worker, workers):
    x = const_float32_pointer(params[0])
    half = float16_pointer(params[1])
    brain = bfloat16_pointer(params[2])
    whole = int32_pointer(params[3])
    byte = uint8_pointer(params[4])
    flag = bool_pointer(params[5])
    back = float32_pointer(params[6])
    v = load(x, 0, 16)
    store(half, 0, v)
    store(brain, 0, v)
    store(whole, 0, int32(v))
    store(byte, 0, uint8(v))
    store(flag, 0, v > float32(1.0))
    store(back, 0, load(half, 0, 16))
    store(back, 16, load(brain, 0, 16))
    store(back, 32, float32(load(flag, 0, 16)))
    for i in range(16, 32):
        half[i] = x[i - 16]
        brain[i] = x[i - 16]
        whole[i] = int32(x[i - 16])
        byte[i] = uint8(x[i - 16])
        flag[i] = x[i - 16] > float32(1.0)
"""
)


def test_conversions_of_vectors_and_scalars() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kernel = compile_sources({"conversions": _CONVERSIONS})["conversions"]
    x = np.array(
        [0, 1, -1.5, 2.5, 65504, 1e-7, 3e38, -3e38, np.inf, -np.inf, np.nan, 255.9, -7, 1.00390625, 0.1, 300],
        np.float32,
    )
    half, brain = np.zeros(32, np.float16), np.zeros(32, ml_dtypes.bfloat16)
    whole, byte, flag, back = (
        np.zeros(32, np.int32),
        np.zeros(32, np.uint8),
        np.zeros(32, bool),
        np.zeros(48, np.float32),
    )
    kernel(x, half, brain, whole, byte, flag, back, workers=1)
    with np.errstate(all="ignore"):
        limited = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0)
        for part in (slice(0, 16), slice(16, 32)):
            np.testing.assert_array_equal(half[part], x.astype(np.float16))
            np.testing.assert_array_equal(
                brain[part].astype(np.float32), x.astype(ml_dtypes.bfloat16).astype(np.float32)
            )
            np.testing.assert_array_equal(whole[part], np.clip(limited, -(2**31), 2**31 - 1).astype(np.int64))
            np.testing.assert_array_equal(byte[part], np.clip(limited, 0, 255))
            np.testing.assert_array_equal(flag[part], x > 1)
    np.testing.assert_array_equal(back[:16], half[:16].astype(np.float32))
    np.testing.assert_array_equal(back[16:32], brain[:16].astype(np.float32))
    np.testing.assert_array_equal(back[32:], flag[:16].astype(np.float32))


_EXTREMES = (
    _HEADER
    + """
def extremes(params, worker, workers):
    a = const_float32_pointer(params[0])
    b = const_float32_pointer(params[1])
    y = float32_pointer(params[2])
    n = params[3]
    u = load_first(a, 0, 16, n)
    v = load_first(b, 0, 16, n)
    store_first(y, 0, maximum(u, v), n)
    store_first(y, 16, minimum(u, v), n)
    store_first(y, 32, maximum(u, float32(0.5)), n)
    store_first(y, 48, minimum(float32(0.5), v), n)
    store_first(y, 64, select(u < v, u, float32(7.0)), n)
    store_first(y, 80, gather_first(a, 0, 2, 16, n // 2), n // 2)
    y[96] = sum_of_lanes(keep_first(u, 3, float32(0.0)))
    y[97] = maximum_of_lanes(keep_first(u, 3, float32(-1.0)))
"""
)


_LANES_EXTREMES = (
    _HEADER
    + """
def extremes_of_lanes(params, worker, workers):
    a = const_{0}_pointer(params[0])
    y = {0}_pointer(params[1])
    u, v = load(a, 0, {1}), load(a, {1}, {1})
    y[0] = maximum_of_lanes(u)
    y[1] = minimum_of_lanes(u)
    store(y, 2, maximum(u, v))
    store(y, 2 + {1}, minimum(u, v))
    store(y, 2 + 2 * {1}, fold_maximum(u, {2}))
    store(y, 2 + 2 * {1} + {2}, fold_minimum(u, {2}))
"""
)


@pytest.mark.parametrize(
    ("dtype", "lanes", "folded"),
    [
        *(("float32", 64, 16), ("float32", 16, 4), ("float32", 8, 2), ("float32", 4, 2), ("float32", 2, 1)),
        *(("float64", 16, 8), ("float64", 8, 4), ("float64", 4, 2), ("float64", 2, 1)),
    ],
)
def test_extremes_of_each_width_are_nan_where_any_number_is(dtype: str, lanes: int, folded: int) -> None:
    kernel = compile_sources({"extremes_of_lanes": _LANES_EXTREMES.format(dtype, lanes, folded)})["extremes_of_lanes"]
    a = np.random.default_rng(lanes).standard_normal(2 * lanes).astype(dtype)
    for place in range(-1, 2 * lanes):
        x = a.copy()
        if place >= 0:
            x[place] = np.nan
        y = np.full(2 + 2 * lanes + 2 * folded, -77, dtype)
        kernel(x, y, workers=1)
        u, v, parts = x[:lanes], x[lanes:], x[:lanes].reshape(-1, folded)
        want = [[u.max(), u.min()], np.maximum(u, v), np.minimum(u, v), parts.max(axis=0), parts.min(axis=0)]
        np.testing.assert_array_equal(y, np.concatenate(want))


def test_extremes_propagate_nan_and_masks_touch_nothing_else() -> None:
    kernel = compile_sources({"extremes": _EXTREMES})["extremes"]
    a = np.array([1, 2, 3, np.nan, 5, 6, np.nan, 0.25, -9, 1, 0], np.float32)
    b = np.array([2, 1, np.nan, 4, 5, np.inf, 7, 0.75, 9, 1, 0], np.float32)
    y = np.full(98, -77, np.float32)
    kernel(a, b, y, len(a), workers=1)
    rows = y[:96].reshape(6, 16)
    with np.errstate(all="ignore"):
        for row, want in zip(
            rows,
            [
                np.maximum(a, b),
                np.minimum(a, b),
                np.maximum(a, 0.5),
                np.minimum(0.5, b),
                np.where(a < b, a, 7),
                a[:10:2],
            ],
            strict=True,
        ):
            np.testing.assert_array_equal(row[: len(want)], want.astype(np.float32))
            assert (row[len(want) :] == -77).all()
    assert (y[96], y[97]) == (6, 3)


def test_the_code_generator_knows_all_words() -> None:
    assert set(numba_cpu_intrinsics.WORDS) == VOCABULARY


def test_this_machine_has_a_width() -> None:
    assert widths()


_LONG = (
    _HEADER
    + """
def longs(params, worker, workers):
    x = const_float32_pointer(params[0])
    y = int64_pointer(params[1])
    store(y, 0, int64(load(x, 0, 16)))
    for i in range(16):
        y[16 + i] = int64(x[i])
"""
)


def test_floats_become_the_nearest_int64() -> None:
    kernel = compile_sources({"longs": _LONG})["longs"]
    ends = [2.0**63, -(2.0**63), 2.0**62, -(2.0**63) - 2.0**41, 9.2e18, np.inf, -np.inf, np.nan]
    x = np.array([0, -0.5, 1.9, -1.9, 2**24, -(2**31), 2**33 + 2**12, 1e-30, *ends], np.float32)
    y = np.zeros(32, np.int64)
    kernel(x, y, workers=1)
    limit = 2**63
    want = [0 if number != number else int(max(min(float(number), limit), -limit)) for number in x.tolist()]
    want = [min(number, limit - 1) for number in want]
    assert y.tolist() == want + want


_STORED = [("float32", 16), ("float64", 4), ("float16", 8), ("uint8", 32), ("int64", 3)]


def _store(element: str, lanes: int) -> str:
    lines = [f"def store_{element}(params, worker, workers):", f"    x = const_{element}_pointer(params[0])"]
    lines += [f"    y = {element}_pointer(params[1])", f"    for i in range({lanes + 4}):"]
    lines += [f"        store_first(y, i * {lanes + 2} + 1, load(x, 0, {lanes}), i - 2)"]
    return _HEADER + "\n".join(lines) + "\n"


def test_the_first_lanes_of_any_number_are_stored() -> None:
    """None of them below zero, all of them beyond the last."""
    kernels = compile_sources({f"store_{element}": _store(element, lanes) for element, lanes in _STORED})
    for element, lanes in _STORED:
        x = np.arange(1, lanes + 1).astype(element)
        y = np.full((lanes + 4, lanes + 2), 99).astype(element)
        kernels[f"store_{element}"](x, y, workers=1)
        for row, found in enumerate(y):
            count = min(max(row - 2, 0), lanes)
            assert found.tolist() == [99, *x[:count].tolist(), *[99] * (lanes + 1 - count)]


def test_slots_are_different_for_workers_with_tasks() -> None:
    lines = ["def slots(params, worker, workers):", "    y = int64_pointer(params[0])"]
    lines += ["    first, last = share(params[1], worker, workers)"]
    lines += ["    slot = worker_slot(params[1], params[2], worker, workers)"]
    lines += ["    if first < last:", "        y[worker] = slot"]
    source = _HEADER + "\n".join(lines) + "\n"
    kernel = compile_sources({"slots": source})["slots"]
    for tasks in (0, 1, 2, 3, 7, 50):
        for workers in (1, 2, 3, 4, 32):
            found = np.full(workers, -1, np.int64)
            most = max(1, min(tasks, workers))
            kernel(found, tasks, most, workers=workers)
            busy = found[found >= 0]
            assert len(busy) == min(tasks, workers) == len(set(busy))
            assert (busy < most).all()
            fewer = np.full(workers, -1, np.int64)
            kernel(fewer, tasks, 1, workers=workers)
            assert set(fewer) <= {0, -1}
