"""Which layers lose most in int8, and how many stay in float for a wanted accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from two_convolutions import network, samples

import mlirt
from mlirt.builder.calibration.sensitivity import Outputs
from mlirt.errors import InvalidInputError

FINE = {"x": 4.0, "/conv1/out_0": 20.0, "relu_1": 20.0, "y": 150.0}


@pytest.fixture(scope="module")
def rough() -> mlirt.Calibration:
    """The second convolution reads far too coarse numbers."""
    scales = {name: range_ / 127 for name, range_ in (FINE | {"relu_1": 2000.0}).items()}
    return mlirt.Calibration("MinMaxCalibration", scales)


def found(calibration: mlirt.Calibration, **options: Any) -> Any:
    return mlirt.sensitivity(network(), calibration, samples(2), target="cpu", **options)


def test_the_worst_layer_comes_first(rough: mlirt.Calibration) -> None:
    ranked = found(rough)
    assert list(ranked.losses) == ["conv2", "conv1"]
    assert ranked.losses["conv2"] > 10 * ranked.losses["conv1"] > 0
    assert ranked.kept == []
    assert [line.split()[0] for line in ranked.lines()] == ["layer", "conv2", "conv1", "accuracy:"]


def test_a_loss_is_that_of_an_engine_with_this_layer_alone_on_int8(rough: mlirt.Calibration) -> None:
    exact = mlirt.compile(network(), "cpu").run({"x": samples(2)})["y"]
    alone = mlirt.compile(network(), "cpu", "int8", calibration=rough, layer_precisions={"conv2": "fp32"})
    error = np.sqrt(np.square(alone.run({"x": samples(2)})["y"] - exact).sum() / np.square(exact).sum())
    losses = found(rough, batch_size=2).losses
    assert losses["conv1"] == pytest.approx(error, rel=0.02)


def test_the_search_keeps_as_few_layers_as_the_target_takes(rough: mlirt.Calibration) -> None:
    result = found(rough, accuracy_target=0.95)
    assert result.kept == ["conv2"]
    assert 0.95 <= result.accuracy < 1
    assert result.layer_precisions == {"conv2": "fp32"}
    assert found(rough, accuracy_target=1.0).kept == ["conv2", "conv1"]


def test_metrics() -> None:
    fine = mlirt.Calibration("MinMaxCalibration", {name: range_ / 127 for name, range_ in FINE.items()})
    assert found(fine, metric="same_answers").accuracy > 0.9

    def half(ours: Outputs, exact: Outputs) -> float:
        return 0.5

    assert found(fine, metric=half, accuracy_target=0.4).accuracy == 0.5
    with pytest.raises(InvalidInputError, match="metric 'guess' is not known; expected one of closeness, same_answers"):
        found(fine, metric="guess")
