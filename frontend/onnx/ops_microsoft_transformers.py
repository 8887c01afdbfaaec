"""Layers of transformers that onnxruntime's optimisers write as one op: embeddings, attention, norms without a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.normalization import by_root_mean_square, standardized
from mlirt.frontend.importing.products import product
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

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
def attention(net: Network, node: Node) -> Value:
    """Heads that attend to each other's words; queries, keys and values are one product with joined weights."""
    if node.optional(4) is not None or node.wants(1) or node.integer("do_rotary", 0):
        raise node.unsupported("keys and values of earlier runs, and rotary positions, are not known")
    x, heads, bias = node.input(0), node.integer("num_heads"), node.optional(2)
    joined = product(net, node, x, node.input(1))
    joined = joined if bias is None else layers.binary(net, "sum", joined, bias)
    width = joined.dims[2]
    if not isinstance(width, int) or heads < 1:
        raise node.invalid(f"expected joined weights of a known width, got {joined.type}")
    sizes = node.integers("qkv_hidden_sizes", [width // 3] * 3)
    starts = [0, sizes[0], sizes[0] + sizes[1]]
    query, key, value = (
        _heads(net, layers.along(net, joined, 2, start, size), heads, size)
        for start, size in zip(starts, sizes, strict=True)
    )
    scores = layers.matrix_multiply(net, query, key, rhs_op="transpose")
    scale = node.real("scale", 0.0) or 1 / math.sqrt(sizes[0] // heads)
    scores = layers.binary(net, "prod", scores, layers.scalar_like(net, scale, scores))
    for shown in _shown(net, node, x):
        hidden = layers.scalar_like(net, node.real("mask_filter_value", _HIDDEN), scores)
        added = layers.select(net, shown, layers.scalar_like(net, 0.0, scores), hidden)
        scores = layers.binary(net, "sum", scores, added)
    given = node.optional(5)
    scores = scores if given is None else layers.binary(net, "sum", scores, given)
    weights = net.emit("softmax", [scores], axis=3)
    mixed = layers.transpose(net, layers.matrix_multiply(net, weights, value), [0, 2, 1, 3])
    return layers.reshape(net, mixed, [*x.dims[:2], sizes[2]])


def _heads(net: Network, x: Value, heads: int, width: int) -> Value:
    """[B, S, heads * d] as [B, heads, S, d]."""
    return layers.transpose(net, layers.reshape(net, x, [*x.dims[:2], heads, width // heads]), [0, 2, 1, 3])


def _shown(net: Network, node: Node, x: Value) -> list[Value]:
    """Which words each word may see, of rank 4: by the mask, and those before it where attention looks one way."""
    batch, length = x.dims[:2]
    places = layers.counting(net, "int64", length)
    mask, found = node.optional(3), list[Value]()
    if mask is not None and mask.rank == 1 and mask.dims[0] == batch:
        ends = layers.reshape(net, layers.cast(net, mask, "int64"), [batch, 1, 1, 1])
        found.append(layers.binary(net, "less", layers.reshape(net, places, [1, 1, 1, length]), ends))
    elif mask is not None and mask.rank in (2, 3):
        whole = layers.reshape(net, mask, [batch, 1, *([1] if mask.rank == 2 else []), *mask.dims[1:]])
        found.append(layers.binary(net, "greater", whole, layers.scalar_like(net, 0, whole)))
    elif mask is not None:
        raise node.unsupported(f"a mask of {mask.type} is not known")
    if node.integer("unidirectional", 0):
        rows = layers.reshape(net, places, [1, 1, length, 1])
        found.append(layers.binary(net, "less_equal", layers.reshape(net, places, [1, 1, 1, length]), rows))
    return found
