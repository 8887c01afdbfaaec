"""Layers of transformers that onnxruntime's optimisers write as one op: embeddings, attention, norms without a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.attention import Scoring, attended, joined_heads, split_heads
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.normalization import by_root_mean_square, standardized
from mlirt.frontend.importing.products import product
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_microsoft_decoders import shown_keys

_DOMAIN = "com.microsoft"
_HIDDEN = -10000.0


@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_normalization(net: Network, node: Node) -> Sequence[Value]:
    x = node.input(0)
    axis = node.axis("axis", -1, x.rank)
    return by_root_mean_square(net, x, node.input(1), axis, node.real("epsilon", 1e-5))


@onnx_op("SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def skip_simplified_layer_normalization(net: Network, node: Node) -> Sequence[Value]:
    """The normalisation of a sum, over the last axis; the sum itself is the fourth result."""
    total = layers.binary(net, "sum", node.input(0), node.input(1))
    bias = node.optional(3)
    total = total if bias is None else layers.binary(net, "sum", total, bias)
    result, inverse = by_root_mean_square(net, total, node.input(2), total.rank - 1, node.real("epsilon", 1e-5))
    return [result, inverse, inverse, total]


@onnx_op("EmbedLayerNormalization", domain=_DOMAIN)
def embed_layer_normalization(net: Network, node: Node) -> Sequence[Value]:
    """The normalised sum of the rows for words, places and segments; and of each mask how many words it shows."""
    words, mask, places = node.input(0), node.optional(7), node.optional(8)
    total = net.emit("gather", [node.input(2), words], mode="default", axis=0)
    if places is None:
        rows = layers.unsqueeze(net, layers.along(net, node.input(3), 0, 0, words.dims[1]), [0])
    else:
        rows = net.emit("gather", [node.input(3), places], mode="default", axis=0)
    total = layers.binary(net, "sum", total, rows)
    segments = node.optional(1)
    if segments is not None:
        total = layers.binary(net, "sum", total, net.emit("gather", [node.input(4), segments], mode="default", axis=0))
    scaled = layers.binary(net, "prod", standardized(net, total, [2], node.real("epsilon", 1e-12)), node.input(5))
    result = layers.binary(net, "sum", scaled, node.input(6))
    if mask is None:
        shown = layers.expand(net, net.constant(np.zeros(1, np.int32)), [words.dims[0]])
    else:
        shown = layers.reduce(net, "sum", layers.cast(net, mask, "int32"), [1], keep_dims=False)
    return [result, shown, total]


@onnx_op("Attention", domain=_DOMAIN)
def attention(net: Network, node: Node) -> Sequence[Value]:
    """Heads that attend to each other's words; queries, keys and values are one product with joined weights."""
    if node.integer("do_rotary", 0) or node.integer("past_present_share_buffer", 0) or node.optional(6) is not None:
        raise node.unsupported("rotary positions and shared buffers are not known")
    x, heads, bias, past = node.input(0), node.integer("num_heads"), node.optional(2), node.optional(4)
    joined = product(net, node, x, node.input(1))
    joined = joined if bias is None else layers.binary(net, "sum", joined, bias)
    width = joined.dims[2]
    if not isinstance(width, int) or heads < 1:
        raise node.invalid(f"expected joined weights of a known width, got {joined.type}")
    sizes = node.integers("qkv_hidden_sizes", [width // 3] * 3)
    starts = [0, sizes[0], sizes[0] + sizes[1]]
    query, key, value = (
        split_heads(net, layers.along(net, joined, 2, start, size), heads)
        for start, size in zip(starts, sizes, strict=True)
    )
    if past is not None:
        earlier = [layers.squeeze(net, layers.along(net, past, 0, k, 1), [0]) for k in range(2)]
        key, value = (layers.concatenate(net, [p, x], 2) for p, x in zip(earlier, (key, value), strict=True))
    scoring = Scoring(
        scale=node.real("scale", 0.0) or 1 / math.sqrt(sizes[0] // heads),
        bias=node.optional(5),
        shown=shown_keys(net, node, node.optional(3), query, key),
        hidden=node.real("mask_filter_value", _HIDDEN),
        adds_hidden=True,
    )
    result = joined_heads(net, attended(net, query, key, value, scoring))
    if not node.wants(1):
        return [result]
    return [result, layers.concatenate(net, [layers.unsqueeze(net, part, [0]) for part in (key, value)], 0)]
