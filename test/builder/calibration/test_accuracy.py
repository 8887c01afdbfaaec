"""A network that is trained here on real digits answers in int8 as it does in float32 (tensorrt-features.md#9.28)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import Array
from train_digits import Digits, small_digits, trained

import mlirt
from mlirt.runtime.engine_interface import EngineLike

MAX_LOSS = 0.005  # of all answers
METHODS = ("entropy", "minmax", "percentile", "mse", "legacy")


@pytest.fixture(scope="module")
def digits() -> Digits:
    return small_digits()


@pytest.fixture(scope="module")
def model(digits: Digits) -> onnx.ModelProto:
    return trained(digits, epochs=8)


@pytest.fixture(scope="module")
def in_float(model: onnx.ModelProto, digits: Digits) -> float:
    accuracy = right_answers(mlirt.compile(model, "cpu"), digits)
    assert accuracy > 0.93
    return accuracy


def right_answers(engine: EngineLike, digits: Digits) -> float:
    return float((engine.run({"x": digits.test})["y"].argmax(1) == digits.test_labels).mean())


def sample(digits: Digits) -> Array:
    return digits.train[:256]


@pytest.mark.parametrize("method", METHODS)
def test_methods(method: str, model: onnx.ModelProto, digits: Digits, in_float: float) -> None:
    found = mlirt.calibrate(model, sample(digits), method, batch_size=32, target="cpu")
    engine = mlirt.compile(model, "cpu", "int8", calibration=found)
    assert right_answers(engine, digits) >= in_float - MAX_LOSS


class Batches:
    """Gives the samples in batches of one, as networks with dynamic dimensions ask for."""

    def __init__(self, samples: Array) -> None:
        self._samples = iter(samples)

    def get_batch_size(self) -> int:
        return 1

    def get_batch(self, names: Sequence[str]) -> list[Array] | None:
        one = next(self._samples, None)
        return None if one is None else [one[np.newaxis]]


class Entropy2(Batches, mlirt.IInt8EntropyCalibrator2):
    pass


class MinMax(Batches, mlirt.IInt8MinMaxCalibrator):
    pass


class Entropy(Batches, mlirt.IInt8EntropyCalibrator):
    pass


class Legacy(Batches, mlirt.IInt8LegacyCalibrator):
    def get_quantile(self) -> float:
        return 0.9999

    def get_regression_cutoff(self) -> float:
        return 0.5


@pytest.mark.parametrize("calibrator", [Entropy2, MinMax, Entropy, Legacy])
def test_calibrators(calibrator: type[Any], model: onnx.ModelProto, digits: Digits, in_float: float) -> None:
    shapes = {"x": [(1, 1, 8, 8), (1, 1, 8, 8), (1024, 1, 8, 8)]}
    asked = calibrator(sample(digits))
    engine = mlirt.compile(model, "cpu", "int8", profiles=shapes, calibration=asked)
    assert right_answers(engine, digits) >= in_float - MAX_LOSS
