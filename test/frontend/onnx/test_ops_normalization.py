"""Normalisations and softmax against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import check_node, imported_text, numbers, one_node

from mlirt.errors import UnsupportedError


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
@pytest.mark.parametrize("stored", [(), (1, 2, 3, 4)])
def test_batch_normalization(opset: int, stored: tuple[int, ...]) -> None:
    statistics = [numbers(3, seed=k) for k in (1, 2, 3)] + [np.abs(numbers(3, seed=4)) + 0.5]
    check_node("BatchNormalization", [numbers(2, 3, 4, 4), *statistics], opset=opset, constants=stored, epsilon=1e-3)


def test_stored_statistics_become_one_scale() -> None:
    statistics = [np.ones(3, np.float32)] * 4
    model, _ = one_node("BatchNormalization", [numbers(2, 3, 4), *statistics], constants=[1, 2, 3, 4])
    text = imported_text(model)
    assert "trt.scale" in text
    assert "trt.elementwise" not in text


def test_training_mode_is_refused() -> None:
    statistics = [np.ones(3, np.float32)] * 4
    model, _ = one_node("BatchNormalization", [numbers(2, 3, 4), *statistics], opset=15, training_mode=1)
    with pytest.raises(UnsupportedError, match="training mode; export the model for inference"):
        imported_text(model)


def test_instance_normalization() -> None:
    check_node("InstanceNormalization", [numbers(2, 3, 4, 5), numbers(3, seed=1), numbers(3, seed=2)], opset=6)


@pytest.mark.parametrize("axis", [-1, 1, -2])
@pytest.mark.parametrize("bias", [False, True])
def test_layer_normalization(axis: int, bias: bool) -> None:
    x = numbers(2, 3, 4)
    shape = x.shape[axis:]
    coefficients = [numbers(*shape, seed=1), numbers(*shape, seed=2)][: 1 + bias]
    for opset in (11, 17):
        check_node("LayerNormalization", [x, *coefficients], opset=opset, axis=axis, epsilon=1e-4)


@pytest.mark.parametrize(("opset", "count"), [(21, 4)])
def test_group_normalization(opset: int, count: int) -> None:
    coefficients = [numbers(count, seed=1), numbers(count, seed=2)]
    check_node("GroupNormalization", [numbers(2, 4, 3, 3), *coefficients], opset=opset, num_groups=2)


def test_local_response_normalization() -> None:
    check_node("LRN", [numbers(1, 7, 3, 3)], opset=13, size=5, alpha=0.1, beta=0.7, bias=1.5)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p: int) -> None:
    check_node("LpNormalization", [numbers(3, 4)], opset=1, p=p, axis=1)


def test_mean_variance_normalization() -> None:
    check_node("MeanVarianceNormalization", [numbers(2, 3, 4, 4)], opset=13)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (2, 3, 4, 2, 3)])
def test_mean_and_variance_of_other_ranks(shape: tuple[int, ...]) -> None:
    check_node("MeanVarianceNormalization", [numbers(*shape)], opset=13)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_flat_before_opset_13(op_type: str, opset: int, axis: int) -> None:
    check_node(op_type, [numbers(2, 3, 4)], opset=opset, axis=axis)
