"""Batches of rows get the outputs of a plan, as Ray Data's map_batches calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine
from mlirt.serve.ray.predictor import Predictor


def test_outputs_are_added_to_the_columns(dense_plan: Path, dense: Engine) -> None:
    x = np.random.default_rng(6).uniform(-1, 1, (5, 8))
    expected = dense.run({"x": x.astype(np.float32)})["y"]
    found = Predictor(str(dense_plan), {"x": "features"})({"features": x, "id": np.arange(5)})
    assert sorted(found) == ["features", "id", "y"]
    assert np.array_equal(found["y"], expected)
    lists = np.empty(5, object)
    lists[:] = list(x.tolist())
    assert np.array_equal(Predictor(str(dense_plan), keep=False)({"x": lists})["y"], expected)


def test_wrong_columns_are_named(dense_plan: Path) -> None:
    predictor = Predictor(str(dense_plan))
    with pytest.raises(InvalidInputError, match="there is no column 'x' for input 'x'; found z"):
        predictor({"z": np.zeros(2)})
    ragged = np.empty(2, object)
    ragged[:] = [[1.0], [1.0, 2.0]]
    with pytest.raises(InvalidInputError, match=r"rows of column 'x' have the shapes \[\(1,\), \(2,\)\]"):
        predictor({"x": ragged})
