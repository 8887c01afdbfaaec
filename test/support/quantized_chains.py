"""Random small networks with QuantizeLinear and DequantizeLinear around every layer, as quantisation tools do it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper
from onnx_models import model_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Quantized:
    """A dequantised tensor, its shape, and the largest number that it may hold."""

    name: str
    shape: tuple[int, ...]
    reach: float


@dataclass
class Chain:
    """A network that grows layer by layer; `tensors` are the names of its quantised tensors."""

    seed: int
    dtype: str
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    tensors: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def node(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def quantized(self, x: str, shape: tuple[int, ...], reach: float, scale: float | None = None) -> Quantized:
        """x, quantised for numbers from about -reach to reach, and back."""
        limits = np.iinfo(self.dtype)
        step = np.array(reach / 128 * self.rng.uniform(0.5, 1.2) if scale is None else scale, np.float32)
        middle = (int(limits.min) + int(limits.max)) // 2
        zero = np.array(self.rng.choice([limits.min, middle, middle + int(self.rng.integers(-40, 40))]), self.dtype)
        names = [self.constant(step), self.constant(zero)]
        self.tensors.append(self.node("QuantizeLinear", [x, *names]))
        return Quantized(self.node("DequantizeLinear", [self.tensors[-1], *names]), shape, float(step) * 128)

    def convolution(self, x: Quantized) -> Quantized:
        channels, size = x.shape[1], int(self.rng.choice([1, 3]))
        groups = channels if self.rng.random() < 0.3 else 1
        kernels = channels if groups > 1 else int(self.rng.integers(4, 20))
        weights = self.rng.integers(-127, 128, (kernels, channels // groups, size, size)).astype(np.int8)
        scale = self.rng.uniform(0.002, 0.01, kernels).astype(np.float32)
        w_names = [self.constant(weights), self.constant(scale), self.constant(np.zeros(kernels, np.int8))]
        kernel = self.node("DequantizeLinear", w_names, axis=0)
        x_scale = self.constants[self.nodes_by_name(x.name).input[1]]
        bias = self.rng.integers(-2000, 2000, kernels).astype(np.int32)
        b_names = [self.constant(bias), self.constant(x_scale * scale), self.constant(np.zeros(kernels, np.int32))]
        added = self.node("DequantizeLinear", b_names, axis=0)
        stride = int(self.rng.choice([1, 2]))
        y = self.node(
            "Conv", [x.name, kernel, added], group=groups, pads=[size // 2] * 4, strides=[stride] * 2,
            kernel_shape=[size, size],
        )  # fmt: skip
        if self.rng.random() < 0.4:
            y = self.node("Relu", [y])
        lengths = [(length - 1) // stride + 1 for length in x.shape[2:]]
        return self.quantized(y, (1, kernels, *lengths), x.reach * (channels // groups * size * size) ** 0.5 * 0.4)

    def nodes_by_name(self, name: str) -> onnx.NodeProto:
        return next(node for node in self.nodes if node.output[0] == name)

    def pair(self, op_type: str, x: Quantized, y: Quantized) -> Quantized:
        reach = (x.reach + y.reach) / 2 if op_type == "Add" else x.reach * y.reach / 4
        return self.quantized(self.node(op_type, [x.name, y.name]), x.shape, reach)

    def mean(self, x: Quantized) -> Quantized:
        y = self.node("AveragePool", [x.name], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=0)
        return self.quantized(y, x.shape, x.reach)

    def maximum(self, x: Quantized) -> Quantized:
        y = self.node("MaxPool", [x.name], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        return self.quantized(y, x.shape, x.reach)

    def scaled_by_channel(self, x: Quantized) -> Quantized:
        """Squeeze and excitation, without the products in between."""
        mean = self.quantized(self.node("GlobalAveragePool", [x.name]), (1, x.shape[1], 1, 1), x.reach / 2)
        gate = self.quantized(self.node("HardSigmoid", [mean.name]), mean.shape, 1.0)
        return self.pair("Mul", x, gate)

    def activation(self, x: Quantized) -> Quantized:
        op_type = str(self.rng.choice(["Sigmoid", "LeakyRelu", "silu", "Relu"]))
        if op_type == "silu":
            y = self.node("Mul", [x.name, self.node("Sigmoid", [x.name])])
        else:
            y = self.node(op_type, [x.name])
        return self.quantized(y, x.shape, 1.0 if op_type == "Sigmoid" else x.reach)

    def joined(self, x: Quantized, y: Quantized) -> Quantized:
        shape = (1, x.shape[1] + y.shape[1], *x.shape[2:])
        return self.quantized(self.node("Concat", [x.name, y.name], axis=1), shape, max(x.reach, y.reach))


def random_network(seed: int, dtype: str, layers: int = 7) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A network whose outputs are all of its quantised tensors, and its feeds."""
    net = Chain(seed, dtype)
    shape = (1, 6, 11, 13)
    pool = [net.quantized("x", shape, 2.0)]
    for _ in range(layers):
        x = pool[-1] if net.rng.random() < 0.8 else pool[int(net.rng.integers(len(pool)))]
        same = [one for one in pool if one.shape == x.shape]
        other = same[int(net.rng.integers(len(same)))]
        choice = int(net.rng.integers(9))
        if choice < 3:
            pool.append(net.convolution(x))
        elif choice < 5:
            pool.append(net.pair("Add" if choice == 3 else "Mul", x, other))
        elif choice == 5:
            pool.append(net.joined(x, other))
        elif choice == 6:
            pool.append(net.scaled_by_channel(x))
        elif choice == 7:
            pool.append(net.activation(x))
        else:
            pool.append(net.mean(x) if net.rng.random() < 0.5 else net.maximum(x))
    model = model_of(net.nodes, {"x": ("float32", shape)}, net.tensors, net.constants, 17)
    return model, {"x": net.rng.normal(size=shape).astype(np.float32)}
