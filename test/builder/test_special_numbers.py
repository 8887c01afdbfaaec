"""Every elementwise layer means one thing: as the reference, as folded constants, as scalar formulas, on the CPU.

Special numbers of every type, and all pairs of them, are computed in each way, by whole vectors and by their tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pytest
from converted_layer import Array, NetworkBuilder, run_passes
from special_numbers import all_pairs, special_numbers
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.builder.build import build
from mlirt.dialects.context import RtContext
from mlirt.dialects.tensor_types import element_type
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.elementwise import INTEGER_ONLY, LOGICAL, ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.unary import TESTS, UnaryKind, UnaryOp

Outputs: TypeAlias = "dict[str, SSAValue]"
Layers: TypeAlias = "Callable[[NetworkBuilder, Sequence[SSAValue]], Outputs]"

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
_LANES = 16
_UNITS = 4  # in the last place
# Whole formulas of the argument's size whose result is small: the error is relative to the argument.
_CANCEL = ("gelu_erf", "gelu_tanh", "mish", "hard_swish")
# Which zero is the larger one, 0.0 or -0.0, is not specified.
_COMPARE_ZEROS = ("max", "min", "relu", "clip", "celu")
_PARAMETERS: dict[ActivationKind, Sequence[tuple[float, float]]] = {
    ActivationKind.LEAKY_RELU: [(0.1, 0.0)],
    ActivationKind.ELU: [(1.0, 0.0)],
    ActivationKind.SELU: [(1.67, 1.05)],
    ActivationKind.SOFTPLUS: [(1.0, 1.0)],
    ActivationKind.CLIP: [(-1.0, 2.0), (0.0, np.inf), (-np.inf, 1.5), (np.nan, 1.0), (0.0, np.nan), (2.0, -1.0)],
    ActivationKind.HARD_SIGMOID: [(0.2, 0.5)],
    ActivationKind.SCALED_TANH: [(2.0, 0.5)],
    ActivationKind.THRESHOLDED_RELU: [(1.0, 0.0)],
    ActivationKind.HARD_SWISH: [(1 / 6, 0.5)],
    ActivationKind.CELU: [(2.0, 0.0)],
}
_ON_INTEGERS = (UnaryKind.ABS, UnaryKind.NEG, UnaryKind.SIGN, UnaryKind.CEIL, UnaryKind.FLOOR, UnaryKind.ROUND)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_functions_of_one_number(dtype: str) -> None:
    def layers(net: NetworkBuilder, x: Sequence[SSAValue]) -> Outputs:
        return {str(kind): net.layer(UnaryOp, x, kind=kind)[0] for kind in _unary_kinds(dtype)}

    check(layers, [special_numbers(dtype)])


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "int64"])
def test_activations(dtype: str) -> None:
    def layers(net: NetworkBuilder, x: Sequence[SSAValue]) -> Outputs:
        return {
            f"{kind} {alpha} {beta}": net.layer(ActivationOp, x, kind=kind, alpha=alpha, beta=beta)[0]
            for kind in ActivationKind
            for alpha, beta in _PARAMETERS.get(kind, [(0.0, 0.0)])
        }

    check(layers, [special_numbers(dtype)])


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_functions_of_two_numbers(dtype: str) -> None:
    def layers(net: NetworkBuilder, x: Sequence[SSAValue]) -> Outputs:
        return {str(kind): net.layer(ElementwiseOp, x, kind=kind)[0] for kind in _binary_kinds(dtype)}

    check(layers, all_pairs(dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_conversions(dtype: str) -> None:
    targets = [one for one in (*FLOATS, *INTEGERS, "int16", "uint16", "bool") if one != dtype]

    def layers(net: NetworkBuilder, x: Sequence[SSAValue]) -> Outputs:
        return {one: net.layer(IdentityOp, x, element=element_type(one))[0] for one in targets}

    check(layers, [special_numbers(dtype)])


@pytest.mark.parametrize("bits", ["128", "256"])
def test_narrower_vectors(bits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_VECTOR_BITS", bits)
    test_functions_of_one_number("float32")
    test_functions_of_two_numbers("float32")
    test_functions_of_two_numbers("int32")


def test_sine_and_cosine_of_all_sizes() -> None:
    """A few units in the last place for every finite float32, whatever its exponent."""
    bits = np.random.default_rng(0).integers(0, 0x7F800000, 20_000, np.int32).view(np.float32)
    x = np.concatenate([bits, -bits])

    def layers(net: NetworkBuilder, x: Sequence[SSAValue]) -> Outputs:
        return {str(kind): net.layer(UnaryOp, x, kind=kind)[0] for kind in (UnaryKind.SIN, UnaryKind.COS)}

    check(layers, [x], rolls=1)


def test_remainders_are_exact() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 0x7F800000, 20_000, np.int32).view(np.float32) for _ in range(2))

    def layers(net: NetworkBuilder, x: Sequence[SSAValue]) -> Outputs:
        return {"fmod": net.layer(ElementwiseOp, x, kind=ElementwiseKind.FMOD)[0]}

    check(layers, [a * rng.choice([-1, 1], a.shape).astype(np.float32), b], units=0, rolls=1)


@pytest.mark.parametrize("exponent", [0.5, -0.5, 0.25, 2.0, -1.0, 3.0, 1.0])
def test_powers_that_are_known(exponent: float) -> None:
    def layers(net: NetworkBuilder, x: Sequence[SSAValue]) -> Outputs:
        power = net.constant(np.full(1, exponent, np.float32))
        return {"pow": net.layer(ElementwiseOp, [x[0], power], kind=ElementwiseKind.POW)[0]}

    check(layers, [special_numbers("float32")])


def _unary_kinds(dtype: str) -> Iterator[UnaryKind]:
    for kind in UnaryKind:
        if dtype == "bool" or kind is UnaryKind.NOT:
            if dtype == "bool" and kind is UnaryKind.NOT:
                yield kind
        elif kind is UnaryKind.BITWISE_NOT:
            if "int" in dtype:
                yield kind
        elif "float" in dtype or kind in _ON_INTEGERS:
            yield kind


def _binary_kinds(dtype: str) -> Iterator[ElementwiseKind]:
    for kind in ElementwiseKind:
        if dtype == "bool":
            if kind in LOGICAL or kind is ElementwiseKind.EQUAL:
                yield kind
        elif kind not in LOGICAL and ("int" in dtype or kind not in INTEGER_ONLY):
            yield kind


def check(layers: Layers, arrays: Sequence[Array], units: int = _UNITS, rolls: int = 0) -> None:
    """The layers give the same in each way; `rolls` says how often the arrays are rolled, all the way without it."""
    arrays = [_with_tail(array) for array in arrays]
    net, names, module = _network(layers, arrays, constant=False)
    want = dict(zip(names, net.run(module), strict=True))
    formulas = module.clone()
    run_passes(formulas, net.ctx, "convert-trt-to-fused")
    _compare("as scalar formulas", want, net.run(formulas), arrays, units)
    _check_on_cpu(net.ctx, module, want, arrays, units, rolls)
    net, _, module = _network(layers, arrays, constant=True)
    run_passes(module, net.ctx, "canonicalize,fold-constants,canonicalize")
    _compare("as folded constants", want, net.run(module), arrays, units)


def _with_tail(array: Array) -> Array:
    """The array and some of its first elements again, so that a vector is left that is not full."""
    return np.resize(array, array.size + (_LANES - 1 - array.size) % _LANES)


def _network(layers: Layers, arrays: Sequence[Array], constant: bool) -> tuple[NetworkBuilder, list[str], ModuleOp]:
    net = NetworkBuilder()
    outputs = layers(net, [(net.constant if constant else net.input)(array) for array in arrays])
    return net, list(outputs), net.module(list(outputs.values()))


def _check_on_cpu(
    ctx: RtContext, module: ModuleOp, want: dict[str, Array], arrays: Sequence[Array], units: int, rolls: int
) -> None:
    """Rolled, so that every number is among those of the last vector."""
    engine = build(module, ctx, "cpu")
    names = [description.name for description in engine.inputs]
    for shift in range(0, arrays[0].size if rolls == 0 else rolls * (_LANES - 1), _LANES - 1):
        rolled = [np.roll(array, shift) for array in arrays]
        got = engine.run(dict(zip(names, rolled, strict=True))).values()
        _compare("on the CPU", {name: np.roll(array, shift) for name, array in want.items()}, got, rolled, units)


def _compare(how: str, want: dict[str, Array], got: Iterable[Array], arrays: Sequence[Array], units: int) -> None:
    for (name, expected), found in zip(want.items(), got, strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), f"{name} {how}"
        wrong = np.flatnonzero(_differ(name.split()[0], expected, found, arrays, units))
        cases = [f"{[array[k] for array in arrays]}: {found[k]} instead of {expected[k]}" for k in wrong[:5]]
        assert not cases, f"{name} {how}: {len(wrong)} wrong, {'; '.join(cases)}"


def _differ(name: str, want: Array, got: Array, arrays: Sequence[Array], units: int) -> Array:
    """Where two results are not the same number, or for floats not close, or not of one sign."""
    if want.dtype.kind != "f" or name in TESTS:
        return want != got
    info = np.finfo(want.dtype)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want), np.abs(arrays[0].astype(want.dtype))) if name in _CANCEL else np.abs(want)
        error = np.abs(want.astype(np.float64) - got.astype(np.float64))
        close = error <= units * (np.float64(info.eps) * size + np.float64(info.tiny) * (name not in ("fmod", "mod")))
    same = (want == got) | (np.isnan(want) & np.isnan(got)) | (np.isfinite(want) & np.isfinite(got) & close)
    one_sign = (np.signbit(want) == np.signbit(got)) | np.isnan(want) | (np.abs(want) > 0) | (name in _COMPARE_ZEROS)
    return ~(same & (one_sign | (got != 0)))
