"""Where quantised layers are not equal to onnxruntime's bit for bit they are never more than one step away (10.16)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_models import model_of
from quantized_arithmetic import differences

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

DTYPES = st.sampled_from(["uint8", "int8"])
SEEDS = st.integers(0, 2**32 - 1)
MAX_SHARE = 0.05
"""The part of the numbers that may be one step away."""


def bytes_of(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype)


def scale_of(rng: np.random.Generator, around: float) -> Array:
    return np.array(around * np.exp(rng.uniform(-1, 1)), np.float32)


def check(found: list[tuple[int, int]], count: int) -> None:
    ((different, farthest),) = found
    assert farthest <= 1
    assert different <= max(MAX_SHARE * count, 2)


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(dtype=DTYPES, seed=SEEDS, factor=st.sampled_from([2.0, 3.0, 1.5]))
def test_linear_resize_between_int8(coordinates: str, dtype: str, seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    x, scale = bytes_of(rng, dtype, (1, 2, 8, 8)), scale_of(rng, 0.05)
    zero = bytes_of(rng, dtype, ())
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("Resize", ["a", "", "f"], ["b"], mode="linear", coordinate_transformation_mode=coordinates),
        helper.make_node("QuantizeLinear", ["b", "s", "z"], ["y"]),
    ]
    constants = {"s": scale, "z": zero, "f": np.array([1, 1, factor, factor], np.float32)}
    model = model_of(nodes, {"x": (dtype, list(x.shape))}, ["y"], constants)
    check(differences(model, {"x": x}), int(x.size * factor * factor))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(dtype=DTYPES, seed=SEEDS, length=st.sampled_from([3, 17, 100]))
def test_softmax_of_int8(dtype: str, seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    x = bytes_of(rng, dtype, (8, length))
    zero = np.array(np.iinfo(dtype).min, dtype)
    arrays = [x, scale_of(rng, 0.05), bytes_of(rng, dtype, ()), np.array(1 / 256, np.float32), zero]
    names = ["x", "s", "z", "t", "o"]
    node = helper.make_node("QLinearSoftmax", names, ["y"], domain="com.microsoft", axis=1, opset=13)
    model = model_of([node], {"x": (dtype, list(x.shape))}, ["y"], dict(zip(names[1:], arrays[1:], strict=True)))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    check(differences(model, {"x": x}), x.size)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=SEEDS, channels=st.sampled_from([4, 16]))
def test_signed_convolutions_between_int8(seed: int, channels: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(-63, 64, (4, channels, 3, 3), np.int8)
    scales = rng.uniform(0.005, 0.02, 4).astype(np.float32)
    x = bytes_of(rng, "int8", (1, channels, 6, 6))
    s, t = scale_of(rng, 0.05), scale_of(rng, 0.5)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["k", "w", "o"], ["b"], axis=0),
        helper.make_node("Conv", ["a", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["c", "t", "z"], ["y"]),
    ]
    constants = {"s": s, "t": t, "z": np.int8(0), "k": weights, "w": scales, "o": np.zeros(4, np.int8)}
    arrays = {name: np.asarray(array) for name, array in constants.items()}
    model = model_of(nodes, {"x": ("int8", list(x.shape))}, ["y"], arrays)
    check(differences(model, {"x": x}), 4 * 36)
