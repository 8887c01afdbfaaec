"""Attention of decoders that onnxruntime's model builders write: rotary positions, caches of keys and values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim, Expr, maximum
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.attention import (
    Scoring,
    attended,
    joined_heads,
    rotated,
    rows_of,
    split_heads,
    written_to_heads,
)
from mlirt.frontend.importing.data_dependent_sizes import number, size_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.normalization import by_root_mean_square
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_DOMAIN = "com.microsoft"


@onnx_op("RotaryEmbedding", domain=_DOMAIN)
def rotary_embedding(net: Network, node: Node) -> Value:
    """Heads rotated by their positions: [B, S, heads * d], or [B, heads, S, d]."""
    if node.integer("is_packed_batching", 0) or node.real("scale", 1.0) != 1.0:
        raise node.unsupported("packed batches and a scale other than 1 are not known")
    x, positions, cosines, sines = (node.input(k) for k in range(4))
    if x.rank not in (3, 4):
        raise node.invalid(f"expected an input of 3 or 4 dimensions, but it has {x.rank}")
    rotary = node.integer("rotary_embedding_dim", 0)
    width = x.dims[2] // node.integer("num_heads") if rotary else cosines.dims[1] * 2
    by_words = (
        layers.transpose(net, x, [0, 2, 1, 3])
        if x.rank == 4
        else layers.reshape(net, x, [*x.dims[:2], x.dims[2] // width, width])
    )
    batch, length = by_words.dims[:2]
    if positions.rank < 2:
        counted = layers.counting(net, "int64", length)
        first = layers.reshape(net, layers.cast(net, positions, "int64"), [1, 1])
        positions = layers.binary(net, "sum", first, layers.reshape(net, counted, [1, length]))
    else:
        positions = layers.reshape(net, positions, [batch, length])
    tables = [rows_of(net, table, positions) for table in (cosines, sines)]
    result = rotated(net, by_words, *tables, interleaved=bool(node.integer("interleaved", 0)))
    return layers.transpose(net, result, [0, 2, 1, 3]) if x.rank == 4 else layers.reshape(net, result, x.dims)


@onnx_op("GroupQueryAttention", domain=_DOMAIN)
def group_query_attention(net: Network, node: Node) -> Sequence[Value]:
    """Causal attention with fewer heads of keys than of queries, over a cache to which the new words are added.

    The cache that comes out is as long as the one that came in, or as all words where these are more. What stands
    behind a sample's last word in it is of no meaning.
    """
    _refuse_what_is_not_known(node)
    heads, kept = node.integer("num_heads"), node.integer("kv_num_heads")
    if heads < 1 or kept < 1 or heads % kept:
        raise node.invalid(f"expected num_heads as a multiple of kv_num_heads, got {heads} and {kept}")
    parts = _queries_keys_values(net, node, heads, kept)
    length = parts[0].dims[1]
    seen = layers.reshape(net, layers.cast(net, node.input(5), "int64"), [parts[0].dims[0], 1])
    start = layers.binary(
        net, "sub", layers.binary(net, "sum", seen, number(net, 1)), layers.length_of(net, parts[0], 1)
    )
    start = layers.binary(net, "max", start, layers.scalar_like(net, 0, start))
    counted = layers.reshape(net, layers.counting(net, "int64", length), [1, length])
    positions = layers.binary(net, "sum", start, counted)
    query, key = (_normalized(net, node, x, k) for x, k in zip(parts[:2], "qk", strict=True))
    if node.integer("do_rotary", 0):
        given = node.optional(9)
        places = positions if given is None else layers.reshape(net, given, [key.dims[0], length])
        tables = [rows_of(net, node.input(k), places) for k in (7, 8)]
        inside = bool(node.integer("rotary_interleaved", 0))
        query, key = (rotated(net, x, *tables, interleaved=inside) for x in (query, key))
    keys, values = (_cached(net, node, new, k, start) for new, k in ((key, 3), (parts[2], 4)))
    total = _length_in_use(node, keys)
    scoring = Scoring(
        scale=node.real("scale", 0.0) or 1 / math.sqrt(_known_width(node, query)),
        softcap=node.real("softcap", 0.0),
        bias=_bias(net, node.optional(10), total),
        shown=_visible(net, node, positions, seen, total),
        sink=_sink(net, node),
    )
    key_part, value_part = (layers.along(net, whole, 2, 0, total) for whole in (keys, values))
    result = attended(net, layers.transpose(net, query, [0, 2, 1, 3]), key_part, value_part, scoring)
    return [joined_heads(net, result), keys, values]


def _refuse_what_is_not_known(node: Node) -> None:
    if node.wants(3) or node.integer("qk_output", 0):
        raise node.unsupported("the scores as a result are not known")
    quantized = [name for name in ("k_quant_type", "v_quant_type") if node.text(name, "NONE") != "NONE"]
    if quantized or node.optional(12) is not None or node.optional(13) is not None:
        raise node.unsupported("a quantised cache of keys and values is not known; export it with one of floats")
    if node.integer("sliding_window_cache", 0) or node.optional(16) is not None:
        raise node.unsupported("a cache as long as its window, and queries of different lengths, are not known")


def _queries_keys_values(net: Network, node: Node, heads: int, kept: int) -> list[Value]:
    """Each as [B, S, heads, d]; queries, keys and values may come as one tensor."""
    query, key, value = node.input(0), node.optional(1), node.optional(2)
    if key is None or value is None:
        width = query.dims[2] // (heads + 2 * kept)
        starts = [0, heads * width, (heads + kept) * width]
        sizes = [heads * width, kept * width, kept * width]
        pieces = [layers.along(net, query, 2, first, size) for first, size in zip(starts, sizes, strict=True)]
    else:
        pieces = [query, key, value]
    counts = (heads, kept, kept)
    return [
        layers.reshape(net, piece, [*piece.dims[:2], count, piece.dims[2] // count])
        for piece, count in zip(pieces, counts, strict=True)
    ]


def _normalized(net: Network, node: Node, x: Value, name: str) -> Value:
    """Queries or keys divided by their root mean square, head by head, where the node has weights for it."""
    weight = node.optional(14 if name == "q" else 15)
    if weight is None:
        return x
    epsilon = node.real(f"{name}_norm_epsilon", node.real("qk_norm_epsilon", 1e-6))
    return by_root_mean_square(net, x, weight, 3, epsilon)[0]


def _known_width(node: Node, query: Value) -> int:
    width = query.dims[-1]
    if not isinstance(width, int):
        raise node.unsupported(f"the width {width} of a head must be known")
    return width


def _cached(net: Network, node: Node, new: Value, k: int, start: Value) -> Value:
    """The cache of input `k` with the new keys or values [B, S, heads, d], as [B, heads, T, d]."""
    past = node.optional(k)
    if past is None:
        return layers.transpose(net, new, [0, 2, 1, 3])
    whole = maximum(past.dims[2], _total_length(net, node))
    longer = layers.pad(net, past, [0] * 4, [0, 0, whole - past.dims[2], 0], "constant", None)
    return written_to_heads(net, longer, layers.transpose(net, new, [0, 2, 1, 3]), start)


def _length_in_use(node: Node, keys: Value) -> Dim:
    """How many words of a cache [B, heads, T, d] queries may see: what stands behind them is of no meaning."""
    known = node.known_dims(6)
    is_cached = node.optional(3) is not None
    return known[0] if is_cached and known and isinstance(known[0], int | Expr) else keys.dims[2]


def _total_length(net: Network, node: Node) -> Dim:
    """How many words the longest sample has."""
    known = node.known_dims(6)
    if known and isinstance(known[0], int | Expr):
        return known[0]
    return size_of(net, node.input(6), node.name)


def _visible(net: Network, node: Node, positions: Value, seen: Value, total: Dim) -> list[Value]:
    """Which keys each query sees: up to itself and within the window, or all of its sample."""
    batch, length = seen.dims[0], positions.dims[1]
    keys = layers.reshape(net, layers.counting(net, "int64", total), [1, 1, 1, total])
    if not node.integer("causal", 1):
        return [layers.binary(net, "less_equal", keys, layers.reshape(net, seen, [batch, 1, 1, 1]))]
    rows = layers.reshape(net, positions, [batch, 1, length, 1])
    found = [layers.binary(net, "less_equal", keys, rows)]
    window = node.integer("local_window_size", -1)
    if window > 0:
        oldest = layers.binary(net, "sub", rows, layers.scalar_like(net, window, rows))
        found.append(layers.binary(net, "greater", keys, oldest))
    return found


def _sink(net: Network, node: Node) -> Value | None:
    given = node.optional(11)
    if given is None and node.integer("smooth_softmax", 0) > 0:
        return net.constant(np.zeros(1, np.float32))
    return given


def _bias(net: Network, bias: Value | None, keys: Dim) -> Value | None:
    """A bias of the scores, as long as the cache."""
    if bias is None or bias.dims[3] == keys:
        return bias
    return layers.pad(net, bias, [0] * 4, [0, 0, 0, keys - bias.dims[3]], "constant", None)


@onnx_op("MultiHeadAttention", domain=_DOMAIN)
def multi_head_attention(net: Network, node: Node) -> Sequence[Value]:
    """Attention of heads that were projected before, with the keys and values of earlier runs in front."""
    if node.optional(8) is not None or node.optional(9) is not None or node.wants(3):
        raise node.unsupported("shared buffers, beams in a cache and the scores as a result are not known")
    heads = node.integer("num_heads")
    query, key, value = _projected(net, node, heads)
    past = node.optional(6), node.optional(7)
    if past[0] is not None and past[1] is not None:
        key, value = (layers.concatenate(net, [p, x], 2) for p, x in zip(past, (key, value), strict=True) if p)
    scoring = Scoring(
        scale=node.real("scale", 0.0) or 1 / math.sqrt(_known_width(node, query)),
        bias=node.optional(5),
        shown=shown_keys(net, node, node.optional(4), query, key),
        hidden=node.real("mask_filter_value", -10000.0),
        adds_hidden=True,
    )
    return [joined_heads(net, attended(net, query, key, value, scoring)), key, value]


def _projected(net: Network, node: Node, heads: int) -> list[Value]:
    """Queries, keys and values as [B, heads, S, d], from one tensor, two or three, with their bias added."""
    query, key, value, bias = node.input(0), node.optional(1), node.optional(2), node.optional(3)
    if query.rank == 5:
        pieces = [layers.squeeze(net, layers.along(net, query, 3, k, 1), [3]) for k in range(3)]
    elif key is not None and key.rank == 5:
        pair = [layers.squeeze(net, layers.along(net, key, 3, k, 1), [3]) for k in range(2)]
        pieces = [query, *pair]
    elif key is not None and value is not None:
        pieces = [query, key, value]
    else:
        raise node.invalid("expected keys and values, or queries, keys and values in one tensor")
    # Of rank 5 came [B, S, heads, d], of cross attention [B, heads, S, d], which has no bias.
    by_heads = [query.rank != 5 and piece.rank == 4 and (key is None or key.rank == 4) for piece in pieces]
    result = list[Value]()
    start: Dim = 0
    for piece, is_done in zip(pieces, by_heads, strict=True):
        if is_done:
            result.append(piece)
            continue
        width = piece.dims[2] * piece.dims[3] if piece.rank == 4 else piece.dims[2]
        flat = layers.reshape(net, piece, [*piece.dims[:2], width])
        if bias is not None:
            flat = layers.binary(net, "sum", flat, layers.along(net, bias, 0, start, width))
        start = start + width
        result.append(split_heads(net, flat, heads))
    return result


def shown_keys(net: Network, node: Node, mask: Value | None, query: Value, key: Value) -> list[Value]:
    """Which of the keys [B, heads, T, d] each query [B, heads, S, d] may see, of rank 4: by the mask, and by order.

    A mask has a length for each sample, or is not 0 for keys [B, T], or for queries and keys [B, S, T], to be seen.
    """
    batch, length, total = query.dims[0], query.dims[2], key.dims[2]
    keys = layers.reshape(net, layers.counting(net, "int64", total), [1, 1, 1, total])
    found = list[Value]()
    if mask is not None and mask.rank == 1 and mask.dims[0] == batch:
        ends = layers.reshape(net, layers.cast(net, mask, "int64"), [batch, 1, 1, 1])
        found.append(layers.binary(net, "less", keys, ends))
    elif mask is not None and mask.rank in (2, 3):
        whole = layers.reshape(net, mask, [batch, 1, *([1] if mask.rank == 2 else []), *mask.dims[1:]])
        found.append(layers.binary(net, "greater", whole, layers.scalar_like(net, 0, whole)))
    elif mask is not None:
        raise node.unsupported(f"a mask of {mask.type} is not known")
    if node.integer("unidirectional", 0):
        earlier = layers.binary(net, "sub", layers.length_of(net, key, 2), layers.length_of(net, query, 2))
        rows = layers.binary(net, "sum", layers.counting(net, "int64", length), earlier)
        found.append(layers.binary(net, "less_equal", keys, layers.reshape(net, rows, [1, 1, length, 1])))
    return found
