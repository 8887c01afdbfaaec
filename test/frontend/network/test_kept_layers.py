"""The parser keeps layers that do nothing, with the names of their tensors (tensorrt-features.md#11.11 and 2.3)."""

from __future__ import annotations

import numpy as np
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config
from onnx import parser

import mlirt as trt

_MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 4] x) => (float[2, 4] y) { before = Identity(x)  r = Relu(before)  behind = Identity(r)  y = Exp(behind) }
"""


def parsed(logger: CollectingLogger) -> trt.INetworkDefinition:
    network = new_network(logger)
    assert trt.OnnxParser(network, logger).parse(parser.parse_model(_MODEL).SerializeToString())
    return network


def test_identities_are_layers_with_their_names() -> None:
    """tensorrt-features.md#11.11: each node is a layer, each of its results a tensor that can be marked."""
    logger = CollectingLogger()
    network = parsed(logger)
    names = [(layer.type.name, layer.get_output(0).name) for layer in network]
    assert names == [("IDENTITY", "before"), ("ACTIVATION", "r"), ("IDENTITY", "behind"), ("UNARY", "y")]
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    for index in (0, 2):
        network.mark_output(network[index].get_output(0))
    found = built(network, cpu_config(logger), logger).engine.run({"x": x})
    np.testing.assert_array_equal(found["before"], x)
    np.testing.assert_array_equal(found["behind"], np.maximum(x, 0))


def test_identities_cost_nothing() -> None:
    """tensorrt-features.md#11.11, 27.4: one launch computes what is left."""
    logger = CollectingLogger()
    assert built(parsed(logger), cpu_config(logger), logger).num_layers == 1
