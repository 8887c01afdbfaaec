"""Recurrent layers in register tiles on the CPU, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recurrent_models import quantized_recurrent_model, recurrent_model

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.rnn.cpu.products import packed
from mlirt.kernels.rnn.cpu.shape import RecurrentTile, tile_for
from mlirt.passes.pipeline import PipelineOptions, run_phases

LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("LSTM", "bidirectional", {"hidden": 33, "batch": 7, "lengths": True, "peepholes": True, "clip": 0.7}),
    ("LSTM", "forward", {"hidden": 32, "batch": 1}),
    ("LSTM", "reverse", {"hidden": 18, "batch": 4, "lengths": True, "element": "float16"}),
    ("GRU", "bidirectional", {"hidden": 36, "batch": 13, "lengths": True}),
    ("GRU", "forward", {"hidden": 16, "linear_before_reset": 1}),
    ("RNN", "reverse", {"hidden": 5, "batch": 30}),
    ("RNN", "forward", {"hidden": 1, "batch": 5}),
    ("GRU", "bidirectional", {"hidden": 1, "batch": 1}),
    ("LSTM", "forward", {"hidden": 1, "batch": 3, "lengths": True}),
]


@pytest.mark.parametrize(("op_type", "direction", "options"), LAYERS)
def test_compiled(op_type: str, direction: str, options: dict[str, Any]) -> None:
    model, feeds = recurrent_model(op_type, direction, **options)
    context = RtContext()
    expected = interpret(import_model(model, context), context, feeds)
    error = 2e-3 if options.get("element") == "float16" else 1e-5
    for name, found in mlirt.compile(model, target="cpu").run(feeds).items():
        want = expected[name].astype(np.float64)
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=0, atol=error)


@pytest.mark.parametrize(
    ("element", "options"),
    [("int8", {"hidden": 33, "each": True}), ("uint8", {"hidden": 32, "batch": 5}), ("int8", {"clip": 0.7})],
)
def test_integers_give_the_same_bits(element: str, options: dict[str, Any]) -> None:
    model, feeds = quantized_recurrent_model(element, **options)
    context = RtContext()
    expected = interpret(import_model(model, context), context, feeds)
    for name, found in mlirt.compile(model, target="cpu").run(feeds).items():
        np.testing.assert_array_equal(found, expected[name])


@pytest.mark.parametrize(("batch", "together"), [(1, True), (30, False)])
def test_directions_of_few_sequences_run_at_the_same_time(batch: int, together: bool) -> None:
    model, _ = recurrent_model("LSTM", "bidirectional", hidden=32, batch=batch)
    context = RtContext()
    module = import_model(model, context)
    run_phases(module, context, options=PipelineOptions("cpu", "fp32"))
    launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
    found = [number for number, op in enumerate(launches) if op.sequential is not None]
    if together:
        assert found[1:] == [found[0] + 1]
        assert launches[found[0]].no_barrier is not None
    else:
        assert not found


def test_sequences_that_only_the_run_counts() -> None:
    model, feeds = recurrent_model("LSTM", hidden=20, batch=9)
    shapes: dict[str, list[int | str]] = {"in0": ["t", "n", 2], "in5": [1, "n", 20], "in6": [1, "n", 20]}
    engine = mlirt.compile(model, target="cpu", input_shapes=shapes)
    for batch in (9, 1):
        given = {name: array[:, :batch] for name, array in feeds.items()}
        context = RtContext()
        smaller, _ = recurrent_model("LSTM", hidden=20, batch=batch)
        expected = interpret(import_model(smaller, context), context, given)
        for name, found in engine.run(given).items():
            np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("sequences", [None, 1, 3, 64])
@pytest.mark.parametrize(("units", "gates"), [(17, 4), (128, 4), (400, 3), (32, 1)])
@pytest.mark.parametrize("lanes", [8, 16])
def test_accumulators_fit_into_registers(sequences: int | None, units: int, gates: int, lanes: int) -> None:
    tile = tile_for(sequences, units, gates, lanes, workers=2)
    assert tile.rows * tile.blocks * gates <= (24 if lanes == 16 else 12)
    assert tile.padded_units >= units


def test_packed_weights() -> None:
    recurrent = np.arange(3 * 2 * 3, dtype=np.float32).reshape(3, 2, 3)
    got = packed(recurrent, RecurrentTile(rows=1, columns=1, lanes=2, units=3)).reshape(2, 3, 1, 2, 2)
    np.testing.assert_array_equal(got[0, :, 0], recurrent[:, :, :2])
    np.testing.assert_array_equal(got[1, :, 0, :, 0], recurrent[:, :, 2])
    np.testing.assert_array_equal(got[1, :, 0, :, 1], 0)
