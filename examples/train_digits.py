"""Train a small convolutional network with a residual on scikit-learn's pictures of digits, in NumPy and from a seed.

`python examples/train_digits.py` writes `digits.onnx`, the folder `digits` with pictures of the training half, and
`digits.npz` with the other half: `x` [n, 1, 8, 8] float32 in [0, 1], and `labels`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]

CHANNELS, MORE_CHANNELS, CLASSES = 16, 32, 10


@dataclass
class Digits:
    """Pictures N x 1 x H x W in [0, 1] with their classes, for training and for testing."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


def small_digits() -> Digits:
    """Scikit-learn's 1,797 digits of 8 x 8 pixels, every other one for testing."""
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    loaded = cast("Any", load_digits())
    return split(loaded.images.astype(np.float32)[:, np.newaxis] / np.float32(16), loaded.target)


def split(pictures: Array, labels: Array) -> Digits:
    """Every other picture is for testing."""
    tested = np.arange(len(pictures)) % 2 == 1
    return Digits(pictures[~tested], labels[~tested], pictures[tested], labels[tested])


class Network:
    """conv + relu, conv + residual + relu, max pooling 2 x 2, conv + relu, classifier."""

    def __init__(self, size: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        shapes = {
            "w1": (CHANNELS, 1, 3, 3),
            "w2": (CHANNELS, CHANNELS, 3, 3),
            "w3": (MORE_CHANNELS, CHANNELS, 3, 3),
            "w4": (MORE_CHANNELS * (size // 2) ** 2, CLASSES),
        }
        self.weights: dict[str, Array] = {}
        for name, shape in shapes.items():
            inputs = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
            self.weights[name] = (rng.standard_normal(shape) * np.sqrt(2 / inputs)).astype(np.float32)
            self.weights[f"b{name[1]}"] = np.zeros(shape[1] if len(shape) == 2 else shape[0], np.float32)

    def forward(self, x: Array) -> tuple[Array, dict[str, Array]]:
        """The scores, and what the gradient is computed from."""
        kept: dict[str, Array] = {"x": x}
        kept["a"] = np.maximum(self._convolved(x, 1), 0)
        kept["r"] = np.maximum(self._convolved(kept["a"], 2) + kept["a"], 0)
        n, c, h, w = kept["r"].shape
        windows = kept["r"].reshape(n, c, h // 2, 2, w // 2, 2)
        kept["p"] = windows.max((3, 5))
        kept["q"] = np.maximum(self._convolved(kept["p"], 3), 0)
        return kept["q"].reshape(n, -1) @ self.weights["w4"] + self.weights["b4"], kept

    def gradients(self, x: Array, labels: Array) -> dict[str, Array]:
        """Of the mean cross entropy."""
        scores, kept = self.forward(x)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        shares[np.arange(len(x)), labels] -= 1
        down = shares / len(x)
        found = {"w4": kept["q"].reshape(len(x), -1).T @ down, "b4": down.sum(0)}
        down = (down @ self.weights["w4"].T).reshape(kept["q"].shape) * (kept["q"] > 0)
        found["w3"], found["b3"], down = self._convolution_gradients(kept["p"], down, 3)
        spread = np.repeat(np.repeat(down, 2, 2), 2, 3)
        largest = np.repeat(np.repeat(kept["p"], 2, 2), 2, 3) == kept["r"]
        down = spread * largest * (kept["r"] > 0)
        found["w2"], found["b2"], inner = self._convolution_gradients(kept["a"], down, 2)
        down = (inner + down) * (kept["a"] > 0)
        found["w1"], found["b1"], _ = self._convolution_gradients(x, down, 1)
        return found

    def _convolved(self, x: Array, layer: int) -> Array:
        weights, bias = self.weights[f"w{layer}"], self.weights[f"b{layer}"]
        return np.tensordot(_windows(x), weights, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2) + bias.reshape(-1, 1, 1)

    def _convolution_gradients(self, x: Array, down: Array, layer: int) -> tuple[Array, Array, Array]:
        weights = np.tensordot(_windows(x), down, ((0, 2, 3), (0, 2, 3))).transpose(3, 0, 1, 2)
        turned = self.weights[f"w{layer}"][:, :, ::-1, ::-1]
        inner = np.tensordot(_windows(down), turned, ((1, 4, 5), (0, 2, 3))).transpose(0, 3, 1, 2)
        return weights, down.sum((0, 2, 3)), inner

    def train(self, x: Array, labels: Array, epochs: int = 12, batch: int = 32, seed: int = 0) -> None:
        """Adam on shuffled batches."""
        rng = np.random.default_rng(seed)
        moments = {name: (np.zeros_like(array), np.zeros_like(array)) for name, array in self.weights.items()}
        step = 0
        for _ in range(epochs):
            order = rng.permutation(len(x))
            for start in range(0, len(x) - batch + 1, batch):
                chosen = order[start : start + batch]
                step += 1
                for name, gradient in self.gradients(x[chosen], labels[chosen]).items():
                    first, second = moments[name]
                    first += 0.1 * (gradient - first)
                    second += 0.001 * (gradient**2 - second)
                    scaled = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
                    self.weights[name] -= np.float32(2e-3) * scaled.astype(np.float32)

    def model(self, size: int) -> onnx.ModelProto:
        """The network for `n` pictures; its output `y` has the scores."""
        nodes = [
            helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="stem", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c1"], ["a"], name="stem_relu"),
            helper.make_node("Conv", ["a", "w2", "b2"], ["c2"], name="body", pads=[1, 1, 1, 1]),
            helper.make_node("Add", ["c2", "a"], ["s"], name="residual"),
            helper.make_node("Relu", ["s"], ["r"], name="body_relu"),
            helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2], name="pool"),
            helper.make_node("Conv", ["p", "w3", "b3"], ["c3"], name="head", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c3"], ["q"], name="head_relu"),
            helper.make_node("Flatten", ["q"], ["f"], name="flatten"),
            helper.make_node("Gemm", ["f", "w4", "b4"], ["y"], name="classifier"),
        ]
        graph = helper.make_graph(
            nodes,
            "digits",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, size, size])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CLASSES])],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _windows(x: Array) -> Array:
    """N x C x H x W x 3 x 3, with zeros around the picture."""
    return sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))


def trained(digits: Digits, epochs: int = 12) -> onnx.ModelProto:
    """The trained network as ONNX."""
    size = digits.train.shape[-1]
    network = Network(size)
    network.train(digits.train, digits.train_labels, epochs)
    return network.model(size)


def main() -> None:
    """Write the network and the pictures."""
    from PIL import Image

    digits = small_digits()
    Path("digits.onnx").write_bytes(trained(digits).SerializeToString())
    folder = Path("digits")
    folder.mkdir(exist_ok=True)
    for number, picture in enumerate(digits.train[:256, 0]):
        Image.fromarray(np.rint(picture * 255).astype(np.uint8)).save(folder / f"{number:03}.png")
    np.savez("digits.npz", x=digits.test, labels=digits.test_labels)
    print(f"digits.onnx, {len(list(folder.iterdir()))} pictures in digits, {len(digits.test)} more in digits.npz")


if __name__ == "__main__":
    main()
