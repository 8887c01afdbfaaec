"""Recurrent layers whose steps all workers share, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recurrent_models import recurrent_model

import mlirt
from mlirt.builder import host
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.rnn.cpu import steps as cpu_steps

LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("LSTM", "bidirectional", {"hidden": 33, "batch": 1, "lengths": True, "peepholes": True, "clip": 0.7}),
    ("LSTM", "reverse", {"hidden": 18, "batch": 1, "lengths": True, "element": "float16"}),
    ("GRU", "bidirectional", {"hidden": 100, "batch": 1, "lengths": True}),
    ("GRU", "forward", {"hidden": 150, "batch": 1, "linear_before_reset": 1}),
    ("RNN", "reverse", {"hidden": 5, "batch": 1}),
    ("LSTM", "reverse", {"hidden": 1, "batch": 1}),
]


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(host, "thread_count", lambda: 2)
    monkeypatch.setattr(cpu_steps, "_LARGE_BYTES", 0)


def launches_of_recurrence(engine: Any) -> int:
    return [layer["family"] for layer in engine.layers].count("rnn")


@pytest.mark.parametrize(("op_type", "direction", "options"), LAYERS)
def test_compiled(op_type: str, direction: str, options: dict[str, Any]) -> None:
    model, feeds = recurrent_model(op_type, direction, **options)
    context = RtContext()
    expected = interpret(import_model(model, context), context, feeds)
    engine = mlirt.compile(model, target="cpu")
    assert launches_of_recurrence(engine) == 4 * (2 if direction == "bidirectional" else 1)
    error = 2e-3 if options.get("element") == "float16" else 1e-5
    for _ in range(3):
        for name, found in engine.run(feeds).items():
            want = expected[name].astype(np.float64)
            np.testing.assert_allclose(found.astype(np.float64), want, rtol=0, atol=error)


@pytest.mark.parametrize("op_type", ["LSTM", "GRU"])
def test_sequences_and_steps_that_only_the_run_counts(op_type: str) -> None:
    model, feeds = recurrent_model(op_type, hidden=40, batch=9)
    inner = {name: array for name, array in feeds.items() if name in ("in5", "in6")}
    shapes: dict[str, Any] = {"in0": ["t", "n", 2], **{name: [1, "n", 40] for name in inner}}
    engine = mlirt.compile(model, target="cpu", input_shapes=shapes)
    for steps, batch in ((feeds["in0"].shape[0], 9), (2, 1), (0, 3), (3, 2)):
        given = {name: array[:, :batch] for name, array in feeds.items()}
        given["in0"] = given["in0"][:steps]
        results = engine.run(given)
        context = RtContext()
        smaller = import_model(model, context, {name: array.shape for name, array in given.items()})
        expected = interpret(smaller, context, given)
        for name, found in results.items():
            np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-5)


def test_small_layers_and_many_sequences_stay_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    many, _ = recurrent_model("LSTM", hidden=20, batch=2)
    assert launches_of_recurrence(mlirt.compile(many, target="cpu")) == 1
    monkeypatch.undo()
    small, _ = recurrent_model("LSTM", hidden=20, batch=1)
    assert launches_of_recurrence(mlirt.compile(small, target="cpu")) == 1
