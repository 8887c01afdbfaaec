"""Convolution, deconvolution and pooling through the network API (tensorrt-features.md#1.6a to 1.7, 1.26a to 1.26d)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import Array, constant, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 4, 9, 8)).astype(np.float32)
KERNEL = RNG.standard_normal((6, 2, 3, 2)).astype(np.float32)
BIAS = RNG.standard_normal(6).astype(np.float32)


def correlation(x: Array, kernel: Array, stride: int, groups: int) -> Array:
    """The sum of products under each place of the kernel."""
    n, _, height, width = x.shape
    maps, depth, r, s = kernel.shape
    y = np.zeros((n, maps, (height - r) // stride + 1, (width - s) // stride + 1))
    for k in range(maps):
        first = k // (maps // groups) * depth
        for i in range(y.shape[2]):
            for j in range(y.shape[3]):
                window = x[:, first : first + depth, i * stride : i * stride + r, j * stride : j * stride + s]
                y[:, k, i, j] = (window * kernel[k]).sum((1, 2, 3))
    return y


def test_convolution_with_groups_stride_and_pads() -> None:
    """tensorrt-features.md#1.6a."""
    network = new_network()
    layer = network.add_convolution_nd(network.add_input("x", trt.float32, X.shape), 6, (3, 2), KERNEL, BIAS)
    layer.num_groups, layer.stride_nd, layer.pre_padding, layer.post_padding = 2, (2, 2), (1, 0), (0, 1)
    assert (layer.kernel_size_nd, layer.num_output_maps, layer.padding_nd) == ((3, 2), 6, (1, 0))
    padded = np.pad(X, ((0, 0), (0, 0), (1, 0), (0, 1)))
    expected = correlation(padded, KERNEL, 2, 2) + BIAS.reshape(1, -1, 1, 1)
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), expected, rtol=1e-4, atol=1e-5)


def test_weights_may_be_inputs() -> None:
    """tensorrt-features.md#1.6f: input 1 is the kernel, input 2 the bias."""
    network = new_network()
    layer = network.add_convolution_nd(network.add_input("x", trt.float32, X.shape), 6, (3, 2), trt.Weights())
    layer.num_groups = 2
    layer.set_input(1, constant(network, KERNEL))
    layer.set_input(2, constant(network, BIAS))
    expected = correlation(X, KERNEL, 1, 2) + BIAS.reshape(1, -1, 1, 1)
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), expected, rtol=1e-4, atol=1e-5)


def test_convolution_of_volumes() -> None:
    """tensorrt-features.md#1.6b, 1.6c: the kernel's rank decides; dimensions before are a batch."""
    network = new_network()
    x = network.add_input("x", trt.float32, (5, 2, 3, 4, 4, 4))
    layer = network.add_convolution_nd(x, 7, (2, 2, 2), np.zeros((7, 3, 2, 2, 2), np.float32))
    assert layer.get_output(0).shape == (5, 2, 7, 3, 3, 3)


@pytest.mark.parametrize(
    ("mode", "lengths"),
    [
        ("EXPLICIT_ROUND_DOWN", (4, 4)),
        ("EXPLICIT_ROUND_UP", (5, 4)),
        ("SAME_UPPER", (5, 4)),
        ("SAME_LOWER", (5, 4)),
        ("CAFFE_ROUND_DOWN", (4, 4)),
        ("CAFFE_ROUND_UP", (5, 4)),
    ],
)
def test_padding_modes(mode: str, lengths: tuple[int, int]) -> None:
    """tensorrt-features.md#1.6g."""
    network = new_network()
    layer = network.add_pooling_nd(network.add_input("x", trt.float32, X.shape), trt.PoolingType.MAX, (2, 2))
    layer.stride_nd, layer.padding_mode = (2, 2), trt.PaddingMode[mode]
    assert layer.get_output(0).shape[2:] == lengths


def test_wrong_number_of_weights() -> None:
    """tensorrt-features.md#31.3, 31.5: the message names the layer."""
    network = new_network()
    layer = network.add_convolution_nd(network.add_input("x", trt.float32, X.shape), 6, (3, 2), np.ones(7, np.float32))
    layer.name = "conv1"
    with pytest.raises(InvalidModelError, match="conv1: kernel weights has count 7 but"):
        output_of(network, layer, {})


def test_deconvolution_undoes_the_shape() -> None:
    """tensorrt-features.md#1.7: the sum over windows of each element times the kernel."""
    kernel = RNG.standard_normal((4, 3, 2, 2)).astype(np.float32)
    network = new_network()
    layer = network.add_deconvolution_nd(network.add_input("x", trt.float32, X.shape), 3, (2, 2), kernel)
    layer.stride_nd = (2, 2)
    expected = np.einsum("nchw,ckrs->nkhrws", X, kernel).reshape(2, 3, 18, 16)
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("excludes", [True, False])
def test_average_pooling(excludes: bool) -> None:
    """tensorrt-features.md#1.26a, 1.26b."""
    network = new_network()
    layer = network.add_pooling_nd(network.add_input("x", trt.float32, X.shape), trt.PoolingType.AVERAGE, (3, 2))
    layer.stride_nd, layer.padding_nd, layer.average_count_excludes_padding = (3, 2), (0, 1), excludes
    padded = np.pad(X, ((0, 0), (0, 0), (0, 0), (1, 1))).reshape(2, 4, 3, 3, 5, 2)
    ones = np.pad(np.ones_like(X), ((0, 0), (0, 0), (0, 0), (1, 1))).reshape(2, 4, 3, 3, 5, 2)
    expected = padded.sum((3, 5)) / (ones.sum((3, 5)) if excludes else 6)
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), expected, rtol=1e-5, atol=1e-6)


def test_blend_of_largest_and_average() -> None:
    """tensorrt-features.md#1.26c."""
    network = new_network()
    kind = trt.PoolingType.MAX_AVERAGE_BLEND
    layer = network.add_pooling_nd(network.add_input("x", trt.float32, X.shape), kind, (3, 2))
    layer.blend_factor, layer.stride_nd = 0.25, (3, 2)
    cells = X.reshape(2, 4, 3, 3, 4, 2)
    expected = 0.75 * cells.max((3, 5)) + 0.25 * cells.mean((3, 5))
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), expected, rtol=1e-5)
