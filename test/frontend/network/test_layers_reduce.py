"""Reduce, softmax, top k and LRN through the network API (tensorrt-features.md#1.21, 1.30, 1.39, 1.40)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import evaluate, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

X = np.random.default_rng(5).standard_normal((2, 3, 4, 5)).astype(np.float32)


def network_with_x() -> tuple[trt.INetworkDefinition, trt.ITensor]:
    network = new_network()
    return network, network.add_input("x", trt.float32, X.shape)


@pytest.mark.parametrize("op", trt.ReduceOperation)
@pytest.mark.parametrize("keep", [True, False])
def test_reduce(op: trt.ReduceOperation, keep: bool) -> None:
    """tensorrt-features.md#1.30a: axes are bits."""
    functions = {"SUM": np.sum, "PROD": np.prod, "MAX": np.max, "MIN": np.min, "AVG": np.mean}
    network, x = network_with_x()
    layer = network.add_reduce(x, op, 1 << 1 | 1 << 3, keep)
    assert (layer.op, layer.axes, layer.keep_dims) == (op, 10, keep)
    expected = functions[op.name](X, axis=(1, 3), keepdims=keep)
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), expected, rtol=1e-4, atol=1e-6)


def test_softmax() -> None:
    """tensorrt-features.md#1.39: the third axis from the last unless it is set."""
    network, x = network_with_x()
    layer = network.add_softmax(x)
    assert layer.axes == 1 << 1
    expected = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), expected, rtol=1e-5)
    layer.axes = 3
    with pytest.raises(InvalidModelError, match=r"condition: isSingleBit\(axes\)"):
        evaluate(network, {"x": X})


@pytest.mark.parametrize(("op", "sign"), [(trt.TopKOperation.MAX, -1), (trt.TopKOperation.MIN, 1)])
def test_top_k(op: trt.TopKOperation, sign: int) -> None:
    """tensorrt-features.md#1.40a."""
    network, x = network_with_x()
    layer = network.add_topk(x, op, 2, 1 << 2)
    for k in range(2):
        network.mark_output(layer.get_output(k))
    assert [layer.get_output(k).dtype for k in range(2)] == [trt.float32, trt.int32]
    values, indices = evaluate(network, {"x": X})
    order = np.argsort(sign * X, axis=2, kind="stable")[:, :, :2]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(X, order, 2))


@pytest.mark.parametrize(
    ("k", "axes", "text"),
    [
        (0, 4, "k > 0 && k <= MAX_TOPK_K"),
        (3841, 4, "k > 0 && k <= MAX_TOPK_K"),
        (5, 4, "K not consistent with dimensions"),
        (1, 6, "reduceAxes must specify exactly one dimension"),
    ],
)
def test_limits_of_top_k(k: int, axes: int, text: str) -> None:
    """tensorrt-features.md#1.40b."""
    network, x = network_with_x()
    with pytest.raises(InvalidModelError, match=text):
        output_of(network, network.add_topk(x, trt.TopKOperation.MAX, k, axes), {"x": X})


def test_lrn() -> None:
    """tensorrt-features.md#1.21, with the numbers of its example."""
    network = new_network()
    layer = network.add_lrn(network.add_input("x", trt.float32, (1, 3, 1, 1)), 3, 1, 1, 1e-4)
    x = np.array([1, 2, 5], np.float32).reshape(1, 3, 1, 1)
    found = output_of(network, layer, {"x": x}).ravel()
    np.testing.assert_allclose(found, [0.59996396, 0.19999799, 0.51723605], rtol=1e-5)
    layer.window_size = 4
    with pytest.raises(InvalidModelError, match="the window is odd"):
        evaluate(network, {"x": x})
