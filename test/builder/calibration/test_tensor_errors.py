"""What int8 loses of each tensor, by the samples of a calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import helper
from onnx_models import model_of

import mlirt
from mlirt.builder.calibration.calibration import Calibration
from mlirt.builder.calibration.comparison import tensor_errors
from mlirt.tools.report.tensor_ranges import tensor_blocks


def calibrated() -> Calibration:
    noise = np.random.default_rng(1)
    weights = {name: noise.standard_normal((64, 64)).astype(np.float32) / 8 for name in ("v", "w")}
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Relu", ["a"], ["<h>"]),
        helper.make_node("MatMul", ["<h>", "w"], ["y"]),
    ]
    model = model_of(nodes, {"x": ("float32", [16, 64])}, ["y"], weights)
    data = [{"x": noise.standard_normal((16, 64)).astype(np.float32)} for _ in range(3)]
    return mlirt.calibrate(model, data, "minmax")


def test_errors_are_those_of_the_tensors() -> None:
    calibration = calibrated()
    errors = tensor_errors(calibration)
    assert set(errors) == {"a", "<h>", "y"}
    assert all(1e-4 < error < 0.05 for error in errors.values())
    assert calibration.samples is not None
    narrow = replace(calibration, scales={name: scale / 20 for name, scale in calibration.scales.items()})
    assert min(tensor_errors(narrow).values()) > 0.3
    kept = tensor_errors(calibration, layer_precisions={"*": "fp32"})
    assert max(kept.values()) < 1e-6


def test_nothing_is_measured_without_samples() -> None:
    assert tensor_errors(replace(calibrated(), samples=None)) == {}


def test_the_report_shows_ranges_errors_and_distributions() -> None:
    calibration = calibrated()
    table, pictures = tensor_blocks(calibration, {"a": 0.25, "y": 0.5})[1:]
    assert "<code>&lt;h&gt;</code>" in table
    assert "25.000%" in table
    assert pictures.count("<figure>") == len(calibration.histograms)
    assert pictures.index("<figcaption>y<") < pictures.index("<figcaption>a<") < pictures.index("&lt;h&gt;")
    assert tensor_blocks(Calibration.from_bytes(calibration.to_bytes()), {}) == []
