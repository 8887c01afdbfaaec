"""The engine that interprets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, numbers

import mlirt
from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.runtime.engine_interface import EngineLike, TensorDescription


@pytest.fixture
def engine() -> EngineLike:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="r"), helper.make_node("MatMul", ["a", "w"], ["y"], name="m")]
    model = model_of(nodes, {"x": ("float32", ["n", 3])}, ["y"], {"w": numbers(3, 4)})
    return mlirt.compile(model, target="reference")


def test_it_describes_itself(engine: EngineLike) -> None:
    assert engine.inputs == (TensorDescription("x", "float32", ("n", 3)),)
    assert engine.outputs == (TensorDescription("y", "float32", ("n", 4)),)
    assert [layer["name"] for layer in engine.layers] == ["r", "m", "m"]


def test_it_runs_any_size(engine: EngineLike) -> None:
    for size in (1, 5, 0):
        x = numbers(size, 3)
        np.testing.assert_allclose(engine.run({"x": x})["y"], np.maximum(x, 0) @ numbers(3, 4), rtol=1e-5, atol=1e-6)


def test_it_times_each_op(engine: EngineLike) -> None:
    times = engine.profile({"x": numbers(2, 3)})
    assert [name for name, _ in times] == ["r", "m", "m"]
    assert all(milliseconds >= 0 for _, milliseconds in times)


@pytest.mark.parametrize("feeds", [{}, {"x": np.zeros((2, 4), np.float32)}, {"x": np.zeros((2, 3))}])
def test_feeds_that_do_not_fit(engine: EngineLike, feeds: dict[str, np.ndarray]) -> None:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    with pytest.raises(InvalidInputError):
        engine.run(feeds)


def test_it_has_no_plan(engine: EngineLike, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="the reference target has no plan to save"):
        engine.save(tmp_path / "plan")
    assert not list(tmp_path.iterdir())
