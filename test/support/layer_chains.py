"""Chains of layers for tests: each step takes a network and a tensor, and gives the layer that it added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from layer_networks import Array, constant, new_network
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import mlirt as trt
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.interpreter import entry_function, interpret
from mlirt.dialects.locations import name_of
from mlirt.frontend.network.module import network_module
from mlirt.passes.pipeline import PipelineOptions, run_phases

Step: TypeAlias = "Callable[[trt.INetworkDefinition, trt.ITensor], trt.ILayer]"


def chain(steps: Sequence[Step], shape: Sequence[int], outputs: Sequence[int]) -> trt.INetworkDefinition:
    """A network of layers `a`, `b`, ..; those of these numbers are outputs, `y0`, `y1`, .."""
    network = new_network()
    tensor = network.add_input("x", trt.float32, shape)
    layers: list[trt.ILayer] = []
    for step in steps:
        layers.append(step(network, tensor))
        layers[-1].name = chr(ord("a") + len(layers) - 1)
        tensor = layers[-1].get_output(0)
    for number in outputs:
        output = layers[number].get_output(0)
        output.name = f"y{number}"
        network.mark_output(output)
    return network


def fused(
    network: trt.INetworkDefinition, target: str = "cpu", precision: str = "fp32", last: str = "fusion"
) -> tuple[ModuleOp, RtContext]:
    """The network after the phase `fusion`, or another one."""
    ctx = RtContext()
    module = network_module(network, ctx)
    run_phases(module, ctx, None, last, options=PipelineOptions(target, precision))
    return module, ctx


def launches(module: ModuleOp) -> list[str]:
    """What runs, as `family: a + b`; views cost nothing."""
    return [f"{_family(op)}: {name_of(op)}" for op in entry_function(module).body.block.ops if _runs(op)]


def _runs(op: Operation) -> bool:
    return isinstance(op, FusedOp) and not isinstance(op, ViewOp)


def _family(op: Operation) -> str:
    return op.name.partition(".")[2]


def results(network: trt.INetworkDefinition, feeds: dict[str, Array]) -> dict[str, Array]:
    """What the layers mean, one by one."""
    ctx = RtContext()
    return interpret(network_module(network, ctx), ctx, feeds)


def activation(kind: trt.ActivationType, alpha: float = 0, beta: float = 0) -> Step:
    def add(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
        layer = network.add_activation(x, kind)
        layer.alpha, layer.beta = alpha, beta
        return layer

    return add


def unary(kind: trt.UnaryOperation) -> Step:
    return lambda network, x: network.add_unary(x, kind)


def combined(kind: trt.ElementWiseOperation, other: Array) -> Step:
    """With a constant."""
    return lambda network, x: network.add_elementwise(x, constant(network, other), kind)


def squared(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
    return network.add_elementwise(x, x, trt.ElementWiseOperation.PROD)


def reduced(kind: trt.ReduceOperation, axes: Sequence[int], keep: bool = True) -> Step:
    return lambda network, x: network.add_reduce(x, kind, sum(1 << axis for axis in axes), keep)


def scaled(mode: trt.ScaleMode, shift: Array, scale: Array, power: Array) -> Step:
    return lambda network, x: network.add_scale(x, mode, shift, scale, power)


def convolved(kernel: Array, bias: Array) -> Step:
    return lambda network, x: network.add_convolution_nd(x, len(kernel), kernel.shape[2:], kernel, bias)


def deconvolved(kernel: Array, stride: int) -> Step:
    def add(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
        layer = network.add_deconvolution_nd(x, kernel.shape[1], kernel.shape[2:], kernel)
        layer.stride_nd = (stride,) * (kernel.ndim - 2)
        return layer

    return add


def padded(pre: Sequence[int], post: Sequence[int]) -> Step:
    """Zeros around the last two axes; negative numbers cut."""
    return lambda network, x: network.add_padding_nd(x, pre, post)


def shuffled(first: Sequence[int], reshape: Sequence[int] | None = None) -> Step:
    def add(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
        layer = network.add_shuffle(x)
        layer.first_transpose = tuple(first)
        if reshape is not None:
            layer.reshape_dims = tuple(reshape)
        return layer

    return add


def softmax(axis: int) -> Step:
    def add(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ILayer:
        layer = network.add_softmax(x)
        layer.axes = 1 << axis
        return layer

    return add


def ranked(count: int, axis: int) -> Step:
    """The largest elements along an axis."""
    return lambda network, x: network.add_topk(x, trt.TopKOperation.MAX, count, 1 << axis)


def random_array(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
