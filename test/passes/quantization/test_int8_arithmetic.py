"""The arithmetic of quantised layers against onnxruntime's integer kernels: every pair of int8, bit for bit."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest
from onnx_models import one_node, run_onnxruntime
from quantized_arithmetic import differences

import mlirt

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DTYPES = ("uint8", "int8")
EXACT = [(0, 0)]


def every_int8(dtype: str) -> Array:
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype)


class Numbers:
    """Reproducible scales of about the same size, and zero points."""

    def __init__(self, seed: int, dtype: str) -> None:
        self.rng, self.dtype = np.random.default_rng(seed), dtype

    def scale(self, around: float = 0.05) -> Array:
        return np.array(around * np.exp(self.rng.uniform(-1, 1)), np.float32)

    def zero(self) -> Array:
        return self.rng.choice(every_int8(self.dtype), ()).astype(self.dtype)

    def of(self, around: float = 0.05) -> list[Array]:
        return [self.scale(around), self.zero()]

    def bytes(self, *shape: int) -> Array:
        return self.rng.choice(every_int8(self.dtype), shape)


def node(op_type: str, arrays: list[Array], inputs: tuple[int, ...], **attributes: Any) -> list[tuple[int, int]]:
    """Differences of one node whose other inputs are constants."""
    constants = [k for k in range(len(arrays)) if k not in inputs]
    return differences(*one_node(op_type, arrays, 17, constants, domain="com.microsoft", **attributes))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_sum(dtype: str, seed: int) -> None:
    own, values = Numbers(seed, dtype), every_int8(dtype)
    a, b = np.repeat(values, 256).reshape(256, 256), np.tile(values, (256, 1))
    assert node("QLinearAdd", [a, *own.of(), b, *own.of(), *own.of(0.1)], (0, 3)) == EXACT


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_sum_that_ties(dtype: str) -> None:
    """The mean of two tensors of one scale: half of the sums lie between two bytes."""
    own, values = Numbers(0, dtype), every_int8(dtype)
    a, b = np.repeat(values, 256).reshape(256, 256), np.tile(values, (256, 1))
    scale, zeros = own.scale(), [np.asarray(values[k]) for k in (128, 127, 1)]
    pairs = [scale, zeros[0], b, scale, zeros[1], np.float32(2) * scale, zeros[2]]
    assert node("QLinearAdd", [a, *pairs], (0, 3)) == EXACT


@pytest.mark.parametrize("number_first", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_with_a_number(dtype: str, number_first: bool) -> None:
    for seed in range(6):
        own, values = Numbers(seed, dtype), every_int8(dtype)
        sides = [[values, *own.of()], [own.bytes(1), *own.of()]]
        first, second = reversed(sides) if number_first else sides
        assert node("QLinearAdd", [*first, *second, *own.of(0.1)], (3,) if number_first else (0,)) == EXACT


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_product(dtype: str, seed: int) -> None:
    own, values = Numbers(seed, dtype), every_int8(dtype)
    a, b = np.repeat(values, 256).reshape(256, 256), np.tile(values, (256, 1))
    assert node("QLinearMul", [a, *own.of(), b, *own.of(), *own.of(0.1)], (0, 3)) == EXACT
    # Products of odd numbers lie between two bytes.
    ties = [np.array(0.5, np.float32), own.zero(), b, np.array(0.5, np.float32), own.zero()]
    assert node("QLinearMul", [a, *ties, np.array(0.5, np.float32), own.zero()], (0, 3)) == EXACT


@pytest.mark.parametrize(("op_type", "attributes"), [("QLinearLeakyRelu", {"alpha": 0.17}), ("QLinearSigmoid", {})])
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_every_byte(dtype: str, op_type: str, attributes: dict[str, float]) -> None:
    for seed in range(10):
        own = Numbers(seed, dtype)
        assert node(op_type, [every_int8(dtype), *own.of(), *own.of(0.02)], (0,), **attributes) == EXACT


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_means_of_channels(dtype: str, channels_last: int) -> None:
    for seed, size in enumerate([4, 7, 8]):
        own = Numbers(seed, dtype)
        x, scale = own.bytes(1, size, size, size), own.scale()
        for result in (scale, own.scale()):
            arrays = [x, scale, own.zero(), result, own.zero()]
            assert node("QLinearGlobalAveragePool", arrays, (0,), channels_last=channels_last) == EXACT


@pytest.mark.parametrize("dtype", DTYPES)
def test_joined_tensors(dtype: str) -> None:
    own, values = Numbers(0, dtype), every_int8(dtype)
    arrays = [*own.of(), values, *own.of(), values, *own.of()]
    assert node("QLinearConcat", arrays, (2, 5), axis=0) == EXACT


@pytest.mark.parametrize("dtype", DTYPES)
def test_choices(dtype: str) -> None:
    own, values = Numbers(0, dtype), every_int8(dtype)
    chosen = own.rng.random(256) < 0.5
    assert node("QLinearWhere", [chosen, values, *own.of(), values[::-1], *own.of(), *own.of()], (0, 1, 4)) == EXACT


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_kernels_of_the_cpu(op_type: str) -> None:
    own, values = Numbers(0, "uint8"), every_int8("uint8")
    a, b = np.repeat(values, 256).reshape(256, 256), np.tile(values, (256, 1))
    scale = np.array(0.0625, np.float32)
    arrays = [a, scale, own.zero(), b, np.array(0.3, np.float32), own.zero(), np.array(0.9375, np.float32), own.zero()]
    model, feeds = one_node(op_type, arrays, 17, (1, 2, 4, 5, 6, 7), domain="com.microsoft")
    (found,) = mlirt.compile(model, target="cpu").run(feeds).values()
    np.testing.assert_array_equal(found, run_onnxruntime(model, feeds)[0])
