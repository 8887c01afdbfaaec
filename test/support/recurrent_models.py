"""ONNX models of one recurrent layer with every option that one test can reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx_models import Array, numbers, one_node

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 2, 4


def recurrent_model(
    op_type: str, direction: str = "forward", *, lengths: bool = False, peepholes: bool = False, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A layer with biases and initial states, and its feeds; the weights are stored in the model."""
    directions = 2 if direction == "bidirectional" else 1
    rows, is_lstm = GATES[op_type] * HIDDEN, op_type == "LSTM"
    arrays: list[Array | None] = [
        numbers(STEPS, BATCH, WIDTH),
        numbers(directions, rows, WIDTH, seed=1),
        numbers(directions, rows, HIDDEN, seed=2),
        numbers(directions, 2 * rows, seed=3),
        np.array([5, 2, 4], np.int32) if lengths else None,
        numbers(directions, BATCH, HIDDEN, seed=4),
    ]
    if is_lstm:
        arrays += [numbers(directions, BATCH, HIDDEN, seed=5)]
        arrays += [numbers(directions, 3 * HIDDEN, seed=6)] if peepholes else []
    attributes |= {"hidden_size": HIDDEN, "direction": direction}
    stored = [k for k in (1, 2, 3, 7) if k < len(arrays)]
    return one_node(op_type, arrays, 14, stored, outputs=3 if is_lstm else 2, **attributes)
