"""Constants in other formats: what is out of range is clamped, with a warning; a lone epsilon does not vanish."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mlirt.dialects.tensor_types import element_type
from mlirt.passes.precision.half_constants import converted, is_exact, loses_weight

HALF = element_type("float16")


def test_clamps_with_a_warning_that_names_the_layer() -> None:
    with pytest.warns(UserWarning, match=r"layer conv1: 2 of 3 constants are beyond the range of float16"):
        result = converted(np.array([1e6, -1e9, 1.0], np.float32), HALF, "conv1")
    assert result.tolist() == [65504.0, -65504.0, 1.0]


def test_infinities_and_nan_stay() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = converted(np.array([np.inf, -np.inf, np.nan], np.float32), HALF, "mask")
    assert np.isposinf(result[0])
    assert np.isneginf(result[1])
    assert np.isnan(result[2])


@pytest.mark.parametrize("number", [1e-12, -1e-12])
def test_a_single_number_does_not_vanish(number: float) -> None:
    result = converted(np.array([number], np.float32), HALF, "norm")
    assert result[0] != 0
    assert np.sign(result[0]) == np.sign(number)


def test_small_weights_do_vanish() -> None:
    assert converted(np.array([1e-12, 1.0], np.float32), HALF, "conv1").tolist() == [0.0, 1.0]


def test_bfloat16_has_the_range_of_float32() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = converted(np.array([1e38], np.float32), element_type("bfloat16"), "conv1")
    assert np.isfinite(result.astype(np.float32)).all()


def test_float32_takes_everything() -> None:
    assert converted(np.array([65504.0], np.float16), element_type("float32"), "conv1").dtype == np.float32


@pytest.mark.parametrize(
    ("largest", "lost"), [(1.0, False), (1e-3, False), (3e-7, True), (1e6, True), (0.0, False), (6e4, False)]
)
def test_weights_that_overflow_or_are_tiny_all_together_are_lost(largest: float, lost: bool) -> None:
    weights = (largest * np.linspace(-1, 1, 101)).astype(np.float32)
    assert loses_weight(weights, HALF) is lost


def test_a_channel_that_is_all_but_zero_is_no_loss() -> None:
    assert not loses_weight(np.array([[1.0, 0.3], [1e-9, 3e-10]], np.float32), HALF)


def test_exact_numbers() -> None:
    assert is_exact(np.array([0.5, 3.0, np.nan, -np.inf], np.float32), HALF)
    assert not is_exact(np.array([0.1], np.float32), HALF)


@pytest.mark.parametrize("at", [0, 70_000, 199_999])
def test_large_weights_are_judged_as_a_whole(at: int) -> None:
    weights = np.full((2, 100_000), 3e-7, np.float32)
    assert loses_weight(weights, HALF)
    weights.reshape(-1)[at] = 1.0
    assert not loses_weight(weights, HALF)
    weights.reshape(-1)[at] = 1e6
    assert loses_weight(weights, HALF)
