"""A network made layer by layer and the same one from ONNX compile to the same IR, and run alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from layer_networks import Array, new_network
from onnx import parser

import mlirt as trt
from mlirt.builder.build import build_plan
from mlirt.dialects.context import RtContext
from mlirt.frontend.network.module import network_module
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.engine import Engine

RNG = np.random.default_rng(7)


def random(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32) / 4


LENET_WEIGHTS = {
    "w1": random(6, 1, 5, 5),
    "b1": random(6),
    "w2": random(16, 6, 5, 5),
    "b2": random(16),
    "w3": random(10, 256),
    "b3": random(10),
}
LENET = """
<ir_version: 8, opset_import: ["" : 17]>
lenet (float[n, 1, 28, 28] image, float[6, 1, 5, 5] w1, float[6] b1, float[16, 6, 5, 5] w2, float[16] b2,
       float[10, 256] w3, float[10] b3) => (float[n, 10] scores) {
   c1 = Conv (image, w1, b1)
   r1 = Relu (c1)
   p1 = MaxPool <kernel_shape: ints = [2, 2], strides: ints = [2, 2]> (r1)
   c2 = Conv (p1, w2, b2)
   r2 = Relu (c2)
   p2 = MaxPool <kernel_shape: ints = [2, 2], strides: ints = [2, 2]> (r2)
   flat = Flatten (p2)
   g = Gemm <transB: int = 1> (flat, w3, b3)
   scores = Softmax (g)
}
"""


def lenet(network: trt.INetworkDefinition) -> None:
    weights = LENET_WEIGHTS
    x = network.add_input("image", trt.float32, (-1, 1, 28, 28))
    x.set_dimension_name(0, "n")
    for kernel, bias in (("w1", "b1"), ("w2", "b2")):
        conv = network.add_convolution_nd(x, len(weights[kernel]), (5, 5), weights[kernel], weights[bias])
        relu = network.add_activation(conv.get_output(0), trt.ActivationType.RELU)
        pool = network.add_pooling_nd(relu.get_output(0), trt.PoolingType.MAX, (2, 2))
        pool.stride_nd = (2, 2)
        x = pool.get_output(0)
    flat = network.add_shuffle(x)
    flat.reshape_dims = (0, -1)
    w3, b3 = (
        network.add_constant(shape, weights[name]).get_output(0) for name, shape in (("w3", (10, 256)), ("b3", (1, 10)))
    )
    none, transpose = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
    product = network.add_matrix_multiply(flat.get_output(0), none, w3, transpose)
    total = network.add_elementwise(product.get_output(0), b3, trt.ElementWiseOperation.SUM)
    scores = network.add_softmax(total.get_output(0))
    scores.axes = 1 << 1
    scores.get_output(0).name = "scores"
    network.mark_output(scores.get_output(0))


BLOCK_WEIGHTS = {
    "w1": random(16, 16, 3, 3),
    "scale": 1 + random(16),
    "shift": random(16),
    "mean": np.zeros(16, np.float32),
    "variance": np.ones(16, np.float32),
    "w2": random(32, 16, 3, 3),
    "w3": random(32, 16, 1, 1),
}
BLOCK = """
<ir_version: 8, opset_import: ["" : 17]>
block (float[2, 16, 14, 14] image, float[16, 16, 3, 3] w1, float[16] scale, float[16] shift, float[16] mean,
       float[16] variance, float[32, 16, 3, 3] w2, float[32, 16, 1, 1] w3) => (float[2, 32, 7, 7] y) {
   c1 = Conv <pads: ints = [1, 1, 1, 1]> (image, w1)
   n1 = BatchNormalization <epsilon: float = 0.0> (c1, scale, shift, mean, variance)
   r1 = Relu (n1)
   c2 = Conv <pads: ints = [1, 1, 1, 1], strides: ints = [2, 2]> (r1, w2)
   c3 = Conv <strides: ints = [2, 2]> (image, w3)
   sum = Add (c2, c3)
   y = Relu (sum)
}
"""


def residual_block(network: trt.INetworkDefinition) -> None:
    weights = BLOCK_WEIGHTS
    x = network.add_input("image", trt.float32, (2, 16, 14, 14))
    first = network.add_convolution_nd(x, 16, (3, 3), weights["w1"])
    first.padding_nd = (1, 1)
    scaled = network.add_scale(first.get_output(0), trt.ScaleMode.CHANNEL, weights["shift"], weights["scale"])
    relu = network.add_activation(scaled.get_output(0), trt.ActivationType.RELU)
    second = network.add_convolution_nd(relu.get_output(0), 32, (3, 3), weights["w2"])
    second.stride_nd = (2, 2)
    second.padding_nd = (1, 1)
    short = network.add_convolution_nd(x, 32, (1, 1), weights["w3"])
    short.stride_nd = (2, 2)
    total = network.add_elementwise(second.get_output(0), short.get_output(0), trt.ElementWiseOperation.SUM)
    y = network.add_activation(total.get_output(0), trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)


def model(text: str, weights: dict[str, Array]) -> onnx.ModelProto:
    proto = parser.parse_model(text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return proto


CASES = [
    pytest.param(lenet, LENET, LENET_WEIGHTS, (3, 1, 28, 28), id="lenet"),
    pytest.param(residual_block, BLOCK, BLOCK_WEIGHTS, (2, 16, 14, 14), id="residual block"),
]


@pytest.mark.parametrize(("make", "text", "weights", "shape"), CASES)
def test_same_ir_after_fusion(
    make: Callable[[trt.INetworkDefinition], None], text: str, weights: dict[str, Array], shape: Sequence[int]
) -> None:
    network = new_network()
    make(network)
    texts: list[list[str]] = []
    for ctx in (RtContext(), RtContext()):
        module = network_module(network, ctx) if not texts else import_model(model(text, weights), ctx)
        run_phases(module, ctx, last="fusion", options=PipelineOptions("cpu"))
        for op in module.walk():
            for value in op.results:
                value.name_hint = None
        lines = str(module).splitlines()
        texts.append([line for line in lines if "trt.constant" not in line])  # weights bear other names
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("make", "text", "weights", "shape"), CASES)
def test_same_results(
    make: Callable[[trt.INetworkDefinition], None], text: str, weights: dict[str, Array], shape: Sequence[int]
) -> None:
    network = new_network()
    make(network)
    feeds = {"image": random(*shape)}
    first, second = RtContext(), RtContext()
    found = Engine(build_plan(network_module(network, first), first, "cpu")).run(feeds)
    expected = Engine(build_plan(import_model(model(text, weights), second), second, "cpu")).run(feeds)
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name])
