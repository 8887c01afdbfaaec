"""Calibration measures what it loses: the default is the method that loses least, and much is never lost in silence."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers, write_model
from two_convolutions import network, samples

import mlirt
from mlirt.builder.calibration.comparison import COMPARED, compare, with_method
from mlirt.builder.calibration.histogram import Array
from mlirt.errors import AccuracyWarning
from mlirt.tools import rt_exec


def clipped_network() -> onnx.ModelProto:
    """A convolution whose results are limited: what is far out in its input does not matter, all the rest does."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["wide"], pads=[1, 1, 1, 1], name="wide_convolution"),
        helper.make_node("Clip", ["wide", "least", "most"], ["near"], name="limit"),
        helper.make_node("Conv", ["near", "v"], ["y"], name="last_convolution"),
    ]
    limits = {"least": np.array(-1, np.float32), "most": np.array(1, np.float32)}
    weights = {"w": numbers(16, 8, 3, 3) * np.float32(0.1), "v": numbers(8, 16, 1, 1, seed=1), **limits}
    return model_of(nodes, {"x": ("float32", (1, 8, 12, 12))}, ["y"], weights)


def with_outliers() -> Array:
    """Numbers of which some lie far out: a few of them decide how far all reach, or are clipped."""
    return np.random.default_rng(2).standard_t(1.2, (8, 8, 12, 12)).astype(np.float32)


def test_the_default_is_what_loses_least() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        found = mlirt.calibrate(clipped_network(), with_outliers(), target="cpu")
    assert [one.method for one in found.errors] == list(COMPARED)
    best = min(found.errors, key=lambda one: one.worst)
    assert found.error == best
    assert max(one.worst for one in found.errors) > 2 * best.worst, "the methods should differ here"
    chosen = with_method(found, best.method)
    assert (found.algorithm, found.scales) == (chosen.algorithm, chosen.scales)
    # The errors are those of the engines that a user would build.
    assert found.samples is not None
    for ours, theirs in zip(found.errors, compare(found, found.samples), strict=True):
        assert (ours.error, ours.worst) == pytest.approx((theirs.error, theirs.worst), rel=1e-3)


def test_a_method_of_the_user_stays_and_is_measured() -> None:
    with pytest.warns(AccuracyWarning, match=r"off by .*wide_convolution.*\(.* alone\).*method='auto'"):
        found = mlirt.calibrate(clipped_network(), with_outliers(), "minmax", target="cpu")
    assert found.algorithm == "MinMaxCalibration"
    assert found.error is not None
    assert found.error.error > 0.05


def test_nothing_is_said_of_a_small_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        found = mlirt.calibrate(network(), samples(), target="cpu")
    assert found.error is not None
    assert found.error.error < 0.05


def test_measuring_can_be_left_out() -> None:
    found = mlirt.calibrate(network(), samples(), target="cpu", measure=False)
    assert (found.algorithm, found.error, found.errors) == ("EntropyCalibration2", None, [])


class _Calibrator(mlirt.IInt8MinMaxCalibrator):
    def __init__(self, batches: Array) -> None:
        super().__init__()
        self.batches = list(batches)

    def get_batch_size(self) -> int:
        return 1

    def get_batch(self, names: Sequence[str]) -> list[Array] | None:
        return [self.batches.pop()[None]] if self.batches else None

    def read_calibration_cache(self) -> None:
        return None

    def write_calibration_cache(self, cache: memoryview) -> None:
        self.cache = cache.tobytes()


def test_calibrators_are_measured_too() -> None:
    calibrator = _Calibrator(with_outliers())
    with pytest.warns(AccuracyWarning, match="wide_convolution"):
        mlirt.compile(clipped_network(), "cpu", "int8", calibration=calibrator)
    assert calibrator.cache.startswith(b"TRT-8503-MinMaxCalibration")


def test_the_exit_line_of_rt_exec_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(clipped_network(), tmp_path / "a.onnx")
    np.save(tmp_path / "samples.npy", with_outliers())
    flags = ["--target=cpu", "--buildOnly", f"--onnx={tmp_path / 'a.onnx'}", "--int8"]
    data = f"--calibData={tmp_path / 'samples.npy'}"
    assert rt_exec.main([*flags, data, "--calibMethod=minmax"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "&&&& PASSED" in lines[-1]
    assert "# WARNING: INT8: the outputs in int8 are off by" in lines[-1]
    assert any("[W] INT8: the outputs in int8" in line and "wide_convolution" in line for line in lines)
    assert rt_exec.main([*flags, data, "--accuracyTarget=0.99"]) == 0
    assert "WARNING" not in capsys.readouterr().out.splitlines()[-1]
