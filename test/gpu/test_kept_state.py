"""State on a GPU: steps of a recurrent cell and a cache that grows, as NumPy has them."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of

import mlirt
from mlirt.runtime.engine import Engine

pytestmark = pytest.mark.gpu


def test_steps_of_a_cell() -> None:
    random = np.random.default_rng(1)
    w = random.standard_normal((64, 64), np.float32) / 8
    nodes = [
        helper.make_node("MatMul", ["h0", "w"], ["a"], name="product"),
        helper.make_node("Add", ["a", "x"], ["b"], name="add"),
        helper.make_node("Tanh", ["b"], ["h1"], name="tanh"),
        helper.make_node("Neg", ["h1"], ["y"], name="neg"),
    ]
    inputs = {"h0": ("float32", ["n", 64]), "x": ("float32", ["n", 64])}
    model = model_of(nodes, inputs, ["y", "h1"], {"w": w})
    engine = cast("Engine", mlirt.compile(model, target="cuda", heuristic=True, state={"h0": "h1"}))
    for batch, sequence in ((3, "a"), (5, "b"), (3, "c")):
        h = np.zeros((batch, 64), np.float32)
        for _ in range(8):
            x = random.standard_normal((batch, 64), np.float32)
            h = np.tanh(h @ w + x)
            np.testing.assert_allclose(engine.run({"x": x}, sequence=sequence)["y"], -h, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(engine.context.state_of(sequence)["h0"], h, rtol=1e-4, atol=1e-5)


def test_cache_that_grows() -> None:
    random = np.random.default_rng(2)
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["present"], name="append", axis=1),
        helper.make_node("ReduceMean", ["present"], ["y"], name="mean", axes=[1], keepdims=0),
    ]
    inputs = {"past": ("float32", ["n", "p", 4]), "x": ("float32", ["n", "t", 4])}
    model = model_of(nodes, inputs, ["y", "present"])
    engine = cast("Engine", mlirt.compile(model, target="cuda", heuristic=True, state={"past": "present"}))
    seen = np.empty((2, 0, 4), np.float32)
    for length in (3, 1, 1, 5, 1):
        x = random.standard_normal((2, length, 4), np.float32)
        seen = np.concatenate([seen, x], 1)
        np.testing.assert_allclose(engine.run({"x": x})["y"], seen.mean(1), rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(engine.state["past"], seen)
