"""Non-maximum suppression against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, run_onnxruntime

import mlirt


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("declared", [30, "n"])
def test_non_max_suppression(target: str, center: int, declared: int | str) -> None:
    names = ["boxes", "scores", "limit", "overlap", "least"]
    node = helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=center)
    shapes: dict[str, Any] = {"boxes": ("float32", ["b", declared, 4]), "scores": ("float32", ["b", 3, declared])}
    shapes |= {"limit": ("int64", [1]), "overlap": ("float32", [1]), "least": ("float32", [1])}
    model = model_of([node], shapes, ["y"])
    engine = mlirt.compile(model, target)
    rng = np.random.default_rng(7)
    for batch, limit, overlap, least in ((1, 30, 0.4, 0.2), (2, 3, 0.1, 0.5), (2, 30, 0.5, 2.0)):
        count = declared if isinstance(declared, int) else 10 * limit + batch
        settings = {"limit": np.array([limit]), "overlap": np.array([overlap], np.float32)}
        feeds = {
            "boxes": rng.uniform(0.1, 4, (batch, count, 4)).astype(np.float32),
            "scores": rng.uniform(size=(batch, 3, count)).astype(np.float32),
            **settings,
            "least": np.array([least], np.float32),
        }
        (expected,) = run_onnxruntime(model, feeds)
        np.testing.assert_array_equal(engine.run(feeds)["y"], expected)
