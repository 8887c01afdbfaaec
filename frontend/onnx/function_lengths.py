"""What ops that ONNX defines by functions need of lengths, where the ops of the function's body need less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlirt.dialects.broadcasting import repeated_to
from mlirt.dialects.length_requirements import at_least, equal, multiple
from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing.data_dependent_sizes import require_lengths
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.node import Node


def require_lengths_of_function(net: Network, node: Node) -> None:
    """Let a run end whose lengths do not fit the op; ops that are not listed need no more than their bodies."""
    check = _CHECKS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if check is not None:
        check(net, node)


def _loss(net: Network, node: Node) -> None:
    """There is a label for each score but for the classes, which are axis 1, and a weight for each class."""
    scores, labels, weights = node.input(0), node.input(1), node.optional(2)
    for expected, found in zip([scores.dims[0], *scores.dims[2:]], labels.dims, strict=False):
        require_lengths(net, node, equal("", "length of the labels", expected, found))
    if weights is not None:
        require_lengths(net, node, equal("", "number of weights", scores.dims[1], weights.dims[0]))


def _attention(net: Network, node: Node) -> None:
    """Batches, heads, sequences and sizes of heads of queries, keys, values, their past and the mask."""
    node.flag("is_causal", default=False)
    query = _by_heads(net, node, node.input(0), "q_num_heads")
    key, value = (_by_heads(net, node, node.input(k), "kv_num_heads") for k in (1, 2))
    for label, other in (("keys", key), ("values", value)):
        _require_equal(net, node, f"batch of the {label}", query[0], other[0])
    _require_equal(net, node, "heads of the values", key[1], value[1])
    fault = "{left} heads of the queries are no multiple of {right} heads of the keys"
    require_lengths(net, node, multiple("", fault, query[1], key[1]))
    _require_equal(net, node, "length of the values", key[2], value[2])
    _require_equal(net, node, "size of a head of the keys", query[3], key[3])
    past_key, past_value = node.optional(4), node.optional(5)
    total = key[2]
    if past_key is not None and past_value is not None:
        _require_equal(net, node, "length of the past values", past_key.dims[2], past_value.dims[2])
        for label, past, now in (("keys", past_key, key), ("values", past_value, value)):
            for axis, what in ((0, "batch"), (1, "heads"), (3, "size of a head")):
                _require_equal(net, node, f"{what} of the past {label}", now[axis], past.dims[axis])
        total = total + past_key.dims[2]
    mask, valid = node.optional(3), node.optional(6)
    if mask is not None:
        _require_mask(net, node, mask.dims, (query[0], query[1], query[2], total))
    if valid is not None:
        _require_equal(net, node, "number of lengths without padding", query[0], valid.dims[0])


def _require_mask(net: Network, node: Node, mask: Sequence[Dim], scores: Sequence[Dim]) -> None:
    """A mask is repeated to the scores; from opset 24 on its rows may end early."""
    if node.opset < 24:
        _require_repeatable(net, node, mask, scores)
        return
    fault = "{right} columns of the mask are more than {left} keys"
    require_lengths(net, node, at_least("", fault, scores[-1], mask[-1]))
    _require_repeatable(net, node, mask[:-1], scores[:-1])


def _by_heads(net: Network, node: Node, x: Value, attribute: str) -> tuple[Dim, ...]:
    """The dimensions batch x heads x sequence x size of a head; inputs of three have the heads side by side."""
    if x.rank == 4:
        return x.dims
    batch, sequence, width = x.dims
    heads = node.integer(attribute)
    require_lengths(net, node, multiple("", "{left} channels are no multiple of {right} heads", width, heads))
    return batch, heads, sequence, width // heads


def _rms_normalization(net: Network, node: Node) -> None:
    """The scale is repeated to the shape of x, and never x to that of the scale."""
    _require_repeatable(net, node, node.input(1).dims, node.input(0).dims)


def _rotary_embedding(net: Network, node: Node) -> None:
    """A row of cosines and sines for each token, or for each position that tokens name."""
    node.flag("interleaved", default=False)
    x, cosines, sines, positions = node.input(0), node.input(1), node.input(2), node.optional(3)
    batch, _, sequence, size = _by_heads(net, node, x, "num_heads")
    for axis, (expected, found) in enumerate(zip(cosines.dims, sines.dims, strict=True)):
        _require_equal(net, node, f"axis {axis} of the sines", expected, found)
    rotated = node.integer("rotary_embedding_dim", 0) or size
    fault = "{left} channels of a head are fewer than the {right} that rotate"
    require_lengths(net, node, at_least("", fault, size, rotated))
    require_lengths(net, node, multiple("", "{left} channels that rotate do not make pairs", rotated, 2))
    _require_equal(net, node, "number of cosines", rotated // 2, cosines.dims[-1])
    label, given = ("cosines", cosines.dims) if positions is None else ("positions", positions.dims)
    _require_equal(net, node, f"batch of the {label}", batch, given[0])
    _require_equal(net, node, f"number of {label}", sequence, given[1])


def _require_equal(net: Network, node: Node, label: str, expected: Dim, found: Dim) -> None:
    require_lengths(net, node, equal("", label, expected, found))


def _require_repeatable(net: Network, node: Node, lengths: Sequence[Dim], target: Sequence[Dim]) -> None:
    """The last dimensions of a shape fit lengths, each of which is repeated where it is 1."""
    for length, wanted in zip(reversed(lengths), reversed(target), strict=False):
        for requirement in repeated_to("", length, wanted):
            require_lengths(net, node, requirement)


_CHECKS: Mapping[str, Callable[[Network, Node], None]] = {
    "Attention": _attention,
    "NegativeLogLikelihoodLoss": _loss,
    "RMSNormalization": _rms_normalization,
    "RotaryEmbedding": _rotary_embedding,
    "SoftmaxCrossEntropyLoss": _loss,
}
