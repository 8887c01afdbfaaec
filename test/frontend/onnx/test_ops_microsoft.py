"""Ops of com.microsoft against onnxruntime."""

from __future__ import annotations

from typing import Any

import pytest
from onnx_models import assert_agrees, imported_text, numbers, one_node

from mlirt.errors import UnsupportedError


def check(
    op_type: str, arrays: list[Any], constants: tuple[int, ...] = (), outputs: int = 1, **attributes: Any
) -> None:
    model, feeds = one_node(op_type, arrays, 17, constants, outputs, "com.microsoft", **attributes)
    assert_agrees(model, feeds)


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid", "Tanh", "LeakyRelu"])
def test_fused_convolution(activation: str) -> None:
    parameters: dict[str, Any] = {"activation_params": [0.2]} if activation == "LeakyRelu" else {}
    arrays = [numbers(1, 3, 6, 6), numbers(4, 3, 3, 3, seed=1), numbers(4, seed=2)]
    check("FusedConv", arrays, (1, 2), activation=activation, **parameters)


def test_fused_products() -> None:
    check("FusedGemm", [numbers(3, 4), numbers(4, 5, seed=1), numbers(5, seed=2)], activation="Relu")
    check("FusedMatMul", [numbers(2, 4, 3), numbers(2, 4, 5, seed=1)], transA=1, alpha=0.5)


def test_gelus() -> None:
    check("Gelu", [numbers(3, 4)])
    check("BiasGelu", [numbers(3, 4), numbers(4, seed=1)])
    check("FastGelu", [numbers(3, 4), numbers(4, seed=1)])
    check("QuickGelu", [numbers(3, 4)], alpha=1.702)


def test_skip_layer_normalization() -> None:
    arrays = [numbers(2, 3, 8), numbers(2, 3, 8, seed=1), *(numbers(8, seed=k) for k in (2, 3, 4))]
    check("SkipLayerNormalization", arrays, epsilon=1e-5)


def test_other_ops_are_refused_by_name() -> None:
    model, _ = one_node("BifurcationDetector", [numbers(2, 3)], domain="com.microsoft")
    with pytest.raises(
        UnsupportedError, match=r"BifurcationDetector \(node 'node', opset 1, domain com.microsoft\) is not supp"
    ):
        imported_text(model)
