"""Regions of interest against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import assert_agrees, check_node, model_of, numbers, one_node, run_onnxruntime

import mlirt

ROIS = np.array([[0.3, 1.2, 5.1, 6.7], [-3, -2, 2, 3], [4, 4, 4.2, 4.1], [0, 0, 20, 20]], np.float32)
OWNERS = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("form", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("scale", "samples"), [(1.0, 2), (0.5, 3)])
def test_means(form: str, scale: float, samples: int) -> None:
    check_node(
        "RoiAlign",
        [numbers(2, 3, 8, 9), ROIS, OWNERS],
        opset=16,
        output_height=2,
        output_width=3,
        sampling_ratio=samples,
        spatial_scale=scale,
        coordinate_transformation_mode=form,
    )


def test_maxima() -> None:
    model, feeds = one_node(
        "RoiAlign",
        [np.abs(numbers(2, 3, 8, 9)), ROIS[:1], OWNERS[:1]],
        opset=16,
        output_height=2,
        output_width=2,
        sampling_ratio=2,
        mode="max",
    )
    assert_agrees(model, feeds)


@pytest.mark.parametrize("form", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_each_region_has_its_own_number_of_samples(form: str, scale: float) -> None:
    check_node(
        "RoiAlign",
        [numbers(2, 3, 8, 9), ROIS, OWNERS],
        opset=16,
        output_height=2,
        output_width=3,
        spatial_scale=scale,
        coordinate_transformation_mode=form,
    )


def test_before_half_pixels_regions_have_at_least_one_cell() -> None:
    check_node("RoiAlign", [numbers(2, 3, 8, 9), ROIS, OWNERS], opset=10, output_height=3, output_width=2)


def test_maxima_of_own_numbers_of_samples() -> None:
    model, feeds = one_node(
        "RoiAlign", [np.abs(numbers(2, 3, 8, 9)), ROIS, OWNERS], opset=16, output_height=2, output_width=2, mode="max"
    )
    assert_agrees(model, feeds)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_without_an_extent_are_zero(mode: str) -> None:
    regions = np.array([[4, 4, 2, 2], [3, 3, 3, 3]], np.float32)
    model, feeds = one_node(
        "RoiAlign", [numbers(1, 2, 8, 9), regions, np.array([0, 0])], opset=16, output_height=2, mode=mode
    )
    assert_agrees(model, feeds)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_numbers_of_samples_and_regions_that_only_a_run_tells(target: str) -> None:
    node = helper.make_node("RoiAlign", ["x", "rois", "owners"], ["y"], output_height=2, output_width=3)
    shapes: dict[str, Any] = {"x": ("float32", ["n", 3, "h", "w"]), "rois": ("float32", ["r", 4])}
    model = model_of([node], shapes | {"owners": ("int64", ["r"])}, ["y"])
    engine = mlirt.compile(model, target)
    for scale, count in ((1, 4), (3, 2), (1, 0)):
        feeds = {"x": numbers(2, 3, 8, 9), "rois": ROIS[:count] * np.float32(scale), "owners": OWNERS[:count]}
        (expected,) = run_onnxruntime(model, feeds)
        np.testing.assert_allclose(engine.run(feeds)["y"], expected, rtol=1e-4, atol=1e-5)
