"""Attention written out: heads, rotary positions, scores with their masks, and grouped products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value

LOWEST = -3.0e38
"""A score that leaves no weight and is no infinity; half precision has its own."""
_LOWEST_HALF = -65504.0


@dataclass(frozen=True)
class Scoring:
    """What happens to the product of queries and keys before the softmax.

    `scale` multiplies it; `softcap` (0: none) bounds it by a tanh; `bias` is added; where a tensor of `shown` (bool, of
    rank 4: batch, heads, queries, keys) is false, `hidden` takes its place, or is added where `adds_hidden`. A `sink`
    is one more score for each query, of heads or one for all, whose weight goes nowhere.
    """

    scale: float
    softcap: float = 0.0
    bias: Value | None = None
    shown: Sequence[Value] = field(default=())
    hidden: float = LOWEST
    adds_hidden: bool = False
    sink: Value | None = None


def split_heads(net: Network, x: Value, heads: int) -> Value:
    """[B, S, heads * d] as [B, heads, S, d]."""
    width = x.dims[2] // heads
    return layers.transpose(net, layers.reshape(net, x, [*x.dims[:2], heads, width]), [0, 2, 1, 3])


def joined_heads(net: Network, x: Value) -> Value:
    """[B, heads, S, d] as [B, S, heads * d]."""
    batch, heads, length, width = x.dims
    return layers.reshape(net, layers.transpose(net, x, [0, 2, 1, 3]), [batch, length, heads * width])


def attended(net: Network, query: Value, key: Value, value: Value, scoring: Scoring) -> Value:
    """softmax(query key^T) value: [B, H, S, d], [B, G, T, d], [B, G, T, e] to [B, H, S, e]; G divides H.

    Where fewer heads of keys than of queries exist, H / G neighbouring queries share one and nothing is repeated.
    """
    batch, heads, length, width = query.dims
    kept = key.dims[1]
    groups = None if kept == heads else (kept, heads // kept)
    if groups is not None:
        query = layers.reshape(net, query, [batch, *groups, length, width])
        key, value = layers.unsqueeze(net, key, [2]), layers.unsqueeze(net, value, [2])
    scores = _scored(net, layers.matrix_multiply(net, query, key, rhs_op="transpose"), scoring, groups)
    weights = _softmax(net, scores, scoring.sink, groups)
    mixed = layers.matrix_multiply(net, weights, value)
    return layers.reshape(net, mixed, [batch, heads, length, value.dims[-1]])


_Groups = tuple[Dim, Dim] | None


def _scored(net: Network, scores: Value, scoring: Scoring, groups: _Groups) -> Value:
    scores = layers.binary(net, "prod", scores, layers.scalar_like(net, scoring.scale, scores))
    if scoring.softcap:
        cap = layers.scalar_like(net, scoring.softcap, scores)
        scores = layers.binary(net, "prod", layers.activation(net, "tanh", layers.binary(net, "div", scores, cap)), cap)
    if scoring.bias is not None:
        scores = layers.binary(net, "sum", scores, _grouped(net, scoring.bias, groups))
    half = scores.element_name == "float16"
    hidden = layers.scalar_like(net, max(scoring.hidden, _LOWEST_HALF) if half else scoring.hidden, scores)
    for shown in scoring.shown:
        visible = _grouped(net, shown, groups)
        if scoring.adds_hidden:
            added = layers.select(net, visible, layers.scalar_like(net, 0.0, scores), hidden)
            scores = layers.binary(net, "sum", scores, added)
        else:
            scores = layers.select(net, visible, scores, hidden)
    return scores


def _softmax(net: Network, scores: Value, sink: Value | None, groups: _Groups) -> Value:
    last = scores.rank - 1
    if sink is None:
        return net.emit("softmax", [scores], axis=last)
    count = scores.dims[last]
    column = _grouped(net, layers.reshape(net, layers.cast(net, sink, scores.element), [1, sink.dims[0], 1, 1]), groups)
    column = layers.expand(net, column, [*scores.dims[:last], 1])
    weights = net.emit("softmax", [layers.concatenate(net, [scores, column], last)], axis=last)
    return layers.along(net, weights, last, 0, count)


def _grouped(net: Network, x: Value, groups: _Groups) -> Value:
    """[B, H or 1, S, T] as the scores of grouped heads have it."""
    if groups is None:
        return x
    parts = [1, 1] if x.dims[1] == 1 else list(groups)
    return layers.reshape(net, x, [x.dims[0], *parts, *x.dims[2:]])


def rotated(net: Network, x: Value, cosines: Value, sines: Value, *, interleaved: bool) -> Value:
    """Rotary positions: the pairs of the first 2 r elements of each head are rotated, the others stay.

    `x` is [B, S, heads, d]; `cosines` and `sines` are [B or 1, S, 1, r]. A pair is two neighbours where `interleaved`,
    else an element and the one r behind it.
    """
    half, last = cosines.dims[3], x.rank - 1
    cosines, sines = (layers.cast(net, table, x.element) for table in (cosines, sines))
    paired, rest = layers.along(net, x, last, 0, half * 2), x.dims[last] - half * 2
    if interleaved:
        first, second = (layers.along(net, paired, last, k, half, 2) for k in range(2))
    else:
        first, second = (layers.along(net, paired, last, start, half) for start in (0, half))
    real = layers.binary(
        net, "sub", layers.binary(net, "prod", first, cosines), layers.binary(net, "prod", second, sines)
    )
    imaginary = layers.binary(
        net, "sum", layers.binary(net, "prod", first, sines), layers.binary(net, "prod", second, cosines)
    )
    if interleaved:
        pairs = [layers.unsqueeze(net, part, [last + 1]) for part in (real, imaginary)]
        found = layers.reshape(net, layers.concatenate(net, pairs, last + 1), paired.dims)
    else:
        found = layers.concatenate(net, [real, imaginary], last)
    return found if rest == 0 else layers.concatenate(net, [found, layers.along(net, x, last, half * 2, rest)], last)


def rows_of(net: Network, table: Value, positions: Value) -> Value:
    """The rows of a table of cosines or sines for positions [B, S], as [B, S, 1, r]."""
    return layers.unsqueeze(net, net.emit("gather", [table, positions], mode="default", axis=0), [2])


def written_from(net: Network, cache: Value, update: Value, start: Value | None, capacity: int | None = None) -> Value:
    """A cache [B, T, ..] with `update` [B, S, ..] in it, for each sample from position `start` (B elements) on.

    With a `capacity` positions count around that length.
    """
    batch, steps = update.dims[:2]
    position = layers.reshape(net, layers.counting(net, "int64", steps), [1, steps])
    if start is not None:
        first = layers.reshape(net, layers.cast(net, start, "int64"), [batch, 1])
        position = layers.binary(net, "sum", first, position)
    if capacity is not None:
        position = layers.binary(net, "mod", position, layers.scalar_like(net, capacity, position))
    position = layers.expand(net, position, [batch, steps])
    sample = layers.expand(net, layers.reshape(net, layers.counting(net, "int64", batch), [batch, 1]), [batch, steps])
    indices = layers.concatenate(net, [layers.unsqueeze(net, value, [2]) for value in (sample, position)], 2)
    return net.emit("scatter", [cache, indices, update], mode="nd")


def written_to_heads(net: Network, cache: Value, update: Value, start: Value) -> Value:
    """A cache [B, heads, T, d] with `update` [B, heads, S, d] in it, for each sample from position `start` (B) on."""
    batch, heads, steps = update.dims[:3]
    whole = [batch, heads, steps]
    first = layers.reshape(net, layers.cast(net, start, "int64"), [batch, 1, 1])
    counted = layers.reshape(net, layers.counting(net, "int64", steps), [1, 1, steps])
    places = [
        layers.reshape(net, layers.counting(net, "int64", batch), [batch, 1, 1]),
        layers.reshape(net, layers.counting(net, "int64", heads), [1, heads, 1]),
        layers.binary(net, "sum", first, counted),
    ]
    columns = [layers.unsqueeze(net, layers.expand(net, place, whole), [3]) for place in places]
    return net.emit("scatter", [cache, layers.concatenate(net, columns, 3), update], mode="nd")
