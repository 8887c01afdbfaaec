"""Regions of interest against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import assert_agrees, check_node, imported_text, numbers, one_node

from mlirt.errors import UnsupportedError

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


def test_a_number_of_samples_that_depends_on_the_region_is_refused() -> None:
    model, _ = one_node("RoiAlign", [numbers(2, 3, 8, 9), ROIS, OWNERS], opset=16)
    with pytest.raises(UnsupportedError, match="give a sampling_ratio"):
        imported_text(model)
