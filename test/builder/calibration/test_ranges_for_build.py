"""What `mlirt.compile` takes as ranges for INT8, and what it says where it has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of
from two_convolutions import network, samples

import mlirt
from mlirt.builder.calibration.ranges_for_build import reach
from mlirt.errors import InvalidInputError


@pytest.fixture(scope="module")
def calibration() -> mlirt.Calibration:
    return mlirt.calibrate(network(), samples(), "minmax", target="cpu")


def outputs(**options: Any) -> np.ndarray[Any, Any]:
    return mlirt.compile(network(), "reference", **options).run({"x": samples()})["y"]


def test_all_forms_of_a_calibration_are_one(calibration: mlirt.Calibration, tmp_path: Path) -> None:
    calibration.save(tmp_path / "cache")
    forms: list[Any] = [calibration.to_bytes(), str(tmp_path / "cache"), tmp_path / "cache"]
    expected = outputs(precision="int8", calibration=calibration)
    for form in forms:
        np.testing.assert_array_equal(outputs(precision="int8", calibration=form), expected)
    exact = outputs()
    assert 0 < np.abs(expected - exact).max() < 0.05 * np.abs(exact).max()


def test_int8_without_ranges_is_refused() -> None:
    """tensorrt-features.md#9.3, 9.4."""
    with pytest.raises(InvalidInputError, match="no scaling factors detected"):
        outputs(precision="int8")
    with pytest.raises(InvalidInputError, match="calibration and ranges are for precision int8"):
        outputs(calibration=b"")


def test_dynamic_ranges_go_before_calibration(calibration: mlirt.Calibration) -> None:
    """tensorrt-features.md#9.20."""
    wide = {"x": (-1000.0, 5.0)}
    rough = outputs(precision="int8", calibration=calibration, dynamic_ranges=wide)
    fine = outputs(precision="int8", calibration=calibration)
    exact = outputs()
    assert np.abs(rough - exact).max() > 5 * np.abs(fine - exact).max()
    alone = outputs(precision="int8", dynamic_ranges=calibration.ranges)
    of_tensors = replace(calibration, channels={})
    np.testing.assert_array_equal(alone, outputs(precision="int8", calibration=of_tensors))


@pytest.mark.parametrize("range_", [(1.0, -1.0), (0.0, 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_ranges_that_are_none(range_: tuple[float, float]) -> None:
    with pytest.raises(InvalidInputError, match="dynamic range of tensor 'x': expected"):
        reach("x", range_)


def test_layers_stay_float32_where_they_are_asked_to(calibration: mlirt.Calibration) -> None:
    floats = {"conv1": "fp32", "conv2": "fp32"}
    np.testing.assert_array_equal(
        outputs(precision="int8", calibration=calibration, layer_precisions=floats), outputs()
    )


def test_networks_that_quantise_themselves_need_no_calibration() -> None:
    """tensorrt-features.md#10.1."""
    scale = np.array(0.1, np.float32)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    model: onnx.ModelProto = model_of(nodes, {"x": ("float32", [4])}, ["y"], {"s": scale, "z": np.array(0, np.int8)})
    mlirt.compile(model, "reference", "int8")
    with pytest.warns(UserWarning, match="Calibrator won't be used in explicit precision mode"):
        mlirt.compile(model, "reference", "int8", dynamic_ranges={"x": 1.0})
