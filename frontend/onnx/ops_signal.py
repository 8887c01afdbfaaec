"""Fourier transforms as products with matrices of sines and cosines."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

# The matrix has length * frequencies * 4 elements.
_MAX_FRAME_LENGTH = 1 << 13


@onnx_op("DFT", since=17)
def fourier(net: Network, node: Node) -> Value:
    """One product over one dimension and the real and imaginary part at once."""
    x = node.input(0)
    if node.opset >= 20:
        axis = node.from_front((node.known_integers(2, "the axis") or [-2])[0], x.rank)
    else:
        axis = node.axis("axis", 1, x.rank)
    parts = x.dims[-1]
    if x.rank > 1 and not isinstance(parts, int):
        raise node.unsupported(
            "the last dimension of its input, which has 1 real or 2 complex parts, is dynamic: "
            "give its length when building (input_shapes)"
        )
    if x.rank < 2 or axis == x.rank - 1 or not isinstance(parts, int) or parts not in (1, 2):
        raise node.invalid("expected an axis before the last one, which holds 1 real or 2 complex parts")
    inverse, onesided = bool(node.integer("inverse", 0)), bool(node.integer("onesided", 0))
    to_real = inverse and onesided
    if to_real and parts != 2:
        raise node.invalid("expected complex numbers, whose inverse is real")
    length = _length(node, (x.dims[axis] - 1) * 2 if to_real else x.dims[axis])
    matrix = real_inverse_matrix(length) if to_real else fourier_matrix(length, parts, inverse, onesided)
    sized = _sized(net, x, axis, length // 2 + 1 if to_real else length)
    order = [k for k in range(x.rank - 1) if k != axis]
    rows = layers.transpose(net, sized, [*order, axis, x.rank - 1])
    outer = list(rows.dims[:-2])
    if not outer:
        raise node.unsupported("it needs a batch dimension")
    flat = layers.reshape(net, rows, [*outer, matrix.shape[0]])
    kind = layers.numpy_dtype(x.element)
    basis = net.constant(matrix.reshape([1] * (len(outer) - 1) + list(matrix.shape)).astype(kind))
    made = 1 if to_real else 2
    product = layers.matrix_multiply(net, flat, basis)
    spectrum = layers.reshape(net, product, [*outer, matrix.shape[1] // made, made])
    back = [*order, axis]
    return layers.transpose(net, spectrum, [*[back.index(k) for k in range(x.rank - 1)], x.rank - 1])


def _length(node: Node, own: Dim) -> int:
    given = node.known_integers(1, "the length")
    length = given[0] if given else own
    if not isinstance(length, int):
        raise node.unsupported("it needs a length that is known when the engine is built")
    if not 0 < length <= _MAX_FRAME_LENGTH:
        raise node.unsupported(f"expected a length from 1 to {_MAX_FRAME_LENGTH}, got {length}")
    return length


def _sized(net: Network, x: Value, axis: int, length: int) -> Value:
    """The first `length` elements along an axis, with zeros behind a shorter one."""
    own = x.dims[axis]
    if own == length:
        return x
    if isinstance(own, int) and own > length:
        return layers.along(net, x, axis, 0, length)
    post: list[Dim] = [0] * x.rank
    post[axis] = length - own
    return layers.pad(net, x, [0] * x.rank, post, "constant", None)


def fourier_matrix(length: int, parts: int, inverse: bool, onesided: bool) -> Array:
    """(time, part) x (frequency, part): what one element adds to each frequency."""
    count = length // 2 + 1 if onesided else length
    steps = np.outer(np.arange(length), np.arange(count)) % length
    angle = (2 if inverse else -2) * np.pi * steps / length
    real = np.stack([np.cos(angle), np.sin(angle)], -1)
    imaginary = np.stack([-np.sin(angle), np.cos(angle)], -1)
    matrix = np.stack([real, imaginary][:parts], 1).reshape(length * parts, 2 * count)
    return matrix / length if inverse else matrix


def real_inverse_matrix(length: int) -> Array:
    """(frequency, part) x time: what a frequency up to the middle adds to a signal, together with its mirror image."""
    count = length // 2 + 1
    frequencies = np.arange(count)
    weight = np.where((frequencies == 0) | (2 * frequencies == length), 1, 2) / length
    angle = 2 * np.pi * (np.outer(frequencies, np.arange(length)) % length) / length
    parts = np.stack([np.cos(angle), -np.sin(angle)], 1) * weight[:, None, None]
    return parts.reshape(2 * count, length)


@onnx_op("STFT", since=17)
def short_time_fourier(net: Network, node: Node) -> Value:
    """A convolution: its kernels are the windowed waves, its stride the step from frame to frame.

    A signal without a last dimension of 1 or 2 parts is real, as onnxruntime has it and exporters write it.
    """
    x, step, window = node.input(0), node.known_integers(1, "the frame step"), node.known(2, "the window")
    if x.rank == 2:
        x = layers.reshape(net, x, [*x.dims, 1])
    if x.rank != 3 or x.dims[2] not in (1, 2) or not step or step[0] < 1:
        raise node.invalid("expected a signal of 2 dimensions, or of 3 with 1 or 2 parts, and a positive frame step")
    given = node.known_integers(3, "the frame length")
    length = given[0] if given else x.dims[1] if window is None else window.size
    if (
        not isinstance(length, int)
        or not 0 < length <= _MAX_FRAME_LENGTH
        or (window is not None and window.size != length)
    ):
        raise node.invalid(
            f"expected a frame length from 1 to {_MAX_FRAME_LENGTH} that the window has too, got {length}"
        )
    parts = int(str(x.dims[2]))
    matrix = fourier_matrix(length, parts, False, bool(node.integer("onesided", 1))).reshape(length, parts, -1)
    if window is not None:
        matrix = matrix * window.reshape(-1, 1, 1)
    kernel = net.constant(matrix.transpose(2, 1, 0)[:, :, None].astype(layers.numpy_dtype(x.element)))
    image = layers.reshape(net, layers.transpose(net, x, [0, 2, 1]), [x.dims[0], parts, 1, x.dims[1]])
    spectrum = net.emit("convolution", [image, kernel, None], stride=[1, step[0]])
    frames = spectrum.dims[3]
    apart = layers.reshape(net, spectrum, [x.dims[0], matrix.shape[2] // 2, 2, frames])
    return layers.transpose(net, apart, [0, 3, 1, 2])
