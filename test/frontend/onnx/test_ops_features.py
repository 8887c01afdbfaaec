"""Scaled and weighed features against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import check_node, imported_text, numbers, one_node, small_integers

from mlirt.errors import InvalidModelError, UnsupportedError

_ML = "ai.onnx.ml"


@pytest.mark.parametrize(("offset", "scale"), [([0.5, -1.0, 2.0], [2.0, 0.5, 1.0]), ([1.0], [3.0])])
def test_scaler(offset: list[float], scale: list[float]) -> None:
    check_node("Scaler", [numbers(4, 3)], domain=_ML, offset=offset, scale=scale)
    check_node("Scaler", [small_integers(4, 3)], domain=_ML, offset=offset, scale=scale)


def test_binarizer() -> None:
    check_node("Binarizer", [numbers(4, 3)], domain=_ML, threshold=0.2)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    x = np.abs(numbers(4, 3))
    x[2] = 0
    check_node("Normalizer", [x], domain=_ML, norm=norm)


@pytest.mark.parametrize("intercepts", [{}, {"intercepts": [0.5, -2.0]}])
def test_linear_regressor(intercepts: dict[str, Any]) -> None:
    weights = [float(value) for value in numbers(6)]
    check_node("LinearRegressor", [numbers(4, 3)], domain=_ML, coefficients=weights, targets=2, **intercepts)


def test_unknown_norms_and_transforms_are_refused() -> None:
    model, _ = one_node("Normalizer", [numbers(4, 3)], domain=_ML, norm="L3")
    with pytest.raises(InvalidModelError, match="expected the norm MAX, L1 or L2, got 'L3'"):
        imported_text(model)
    model, _ = one_node("LinearRegressor", [numbers(4, 1)], domain=_ML, coefficients=[1.0], post_transform="PROBIT")
    with pytest.raises(UnsupportedError, match="post_transform PROBIT"):
        imported_text(model)
