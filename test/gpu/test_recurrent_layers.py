"""Recurrent layers on a GPU, whose blocks wait for each other's numbers: right for any number of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx_models import Array, run_onnxruntime, run_reference
from recurrent_models import quantized_recurrent_model, recurrent_model, with_any_batch
from repeated_runs import differing_runs

from mlirt.builder.compile import compile

pytestmark = pytest.mark.gpu

_RUNS = 20


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("hidden", [24, 100, 400])
@pytest.mark.parametrize("op_type", ["LSTM", "GRU"])
def test_any_number_of_sequences(op_type: str, hidden: int, precision: str) -> None:
    engine = compile(with_any_batch(recurrent_model(op_type, hidden=hidden)[0]), "cuda", precision, heuristic=True)
    for batch in (1, 3, 40):
        model, feeds = recurrent_model(op_type, hidden=hidden, batch=batch)
        check(run_onnxruntime(model, feeds), feeds, engine, precision)


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_sequences_of_their_own_lengths(direction: str) -> None:
    options: dict[str, Any] = {"direction": direction, "hidden": 48, "lengths": True}
    engine = compile(with_any_batch(recurrent_model("LSTM", **options)[0]), "cuda", heuristic=True)
    for batch in (2, 33):
        model, feeds = recurrent_model("LSTM", batch=batch, **options)
        check(run_onnxruntime(model, feeds), feeds, engine, "fp32")


@pytest.mark.parametrize("hidden", [20, 256, 512])
@pytest.mark.parametrize("element", ["int8", "uint8"])
def test_weights_of_integers(element: str, hidden: int) -> None:
    for batch in (1, 3):
        model, feeds = quantized_recurrent_model(element, hidden=hidden, batch=batch)
        # For several sequences the steps of onnxruntime depend on how many threads it has.
        expected = run_onnxruntime(model, feeds) if batch == 1 else run_reference(model, feeds)
        check(expected, feeds, compile(model, "cuda", heuristic=True), "fp32")


def check(expected: Sequence[Array], feeds: dict[str, Array], engine: Any, precision: str) -> None:
    """Assert the expected numbers, and the same bits in every run."""
    found = list(engine.run(feeds).values())
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 if precision == "fp32" else 1e-2)
    assert differing_runs(engine, feeds, _RUNS) == []
