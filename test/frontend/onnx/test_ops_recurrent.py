"""Recurrent layers against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import assert_agrees, imported_text, numbers, one_node
from recurrent_models import recurrent_model

from mlirt.errors import InvalidModelError, UnsupportedError


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize(
    ("op_type", "options"),
    [
        ("RNN", {}),
        ("RNN", {"clip": 0.3}),
        ("GRU", {}),
        ("GRU", {"linear_before_reset": 1}),
        ("LSTM", {}),
        ("LSTM", {"peepholes": True, "clip": 0.7}),
        ("LSTM", {"input_forget": 1}),
    ],
)
def test_layer(op_type: str, options: dict[str, Any], direction: str, lengths: bool) -> None:
    assert_agrees(*recurrent_model(op_type, direction, lengths=lengths, **options))


def test_activations_of_each_direction() -> None:
    names = ["HardSigmoid", "Softsign", "LeakyRelu", "Sigmoid", "Relu", "Elu"]
    model, feeds = recurrent_model("LSTM", "bidirectional", activations=names, activation_alpha=[0.3, 0.1, 0.7])
    assert_agrees(model, feeds)


def test_batch_first_is_the_same_layer() -> None:
    """onnxruntime has no `layout` 1, so the plain layout says what is right."""
    from onnx_models import run_reference

    arrays = [numbers(5, 3, 2), numbers(1, 12, 2), numbers(1, 12, 4), None, None, numbers(1, 3, 4)]
    swapped = [arrays[0].swapaxes(0, 1), *arrays[1:5], arrays[5].swapaxes(0, 1)]  # pyright: ignore[reportOptionalMemberAccess]
    y, h = run_reference(*one_node("GRU", arrays, 14, outputs=2, hidden_size=4))
    batch_first = run_reference(*one_node("GRU", swapped, 14, outputs=2, hidden_size=4, layout=1))
    np.testing.assert_array_equal(batch_first[0], y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(batch_first[1], h.swapaxes(0, 1))


def test_an_unknown_activation_is_refused() -> None:
    model, _ = recurrent_model("RNN", activations=["Affine"])
    with pytest.raises(UnsupportedError, match=r"RNN \(node 'node'.*activation 'Affine'"):
        imported_text(model)


def test_weights_of_another_size_are_refused() -> None:
    model, _ = one_node("RNN", [numbers(5, 3, 2), numbers(1, 4, 2), numbers(1, 4, 5)], 14, hidden_size=4)
    with pytest.raises(InvalidModelError, match=r"expected recurrent weights \[4, 4\], but they are \[4, 5\]"):
        imported_text(model)


def test_weights_of_dynamic_lengths_are_not_supported() -> None:
    model, _ = one_node("GRU", [numbers(5, 3, 2), numbers(1, 12, 2), numbers(1, 12, 4)], 14, hidden_size=4)
    for given, axis in ((1, 1), (2, 1), (2, 2)):
        model.graph.input[given].type.tensor_type.shape.dim[axis].dim_param = f"h{axis}"
    with pytest.raises(UnsupportedError, match=r"GRU \(node 'node'.*recurrent weights are dynamic: give them"):
        imported_text(model)
    assert "trt.rnn" in imported_text(model, input_shapes={"in1": [1, 12, 2], "in2": [1, 12, 4]})
