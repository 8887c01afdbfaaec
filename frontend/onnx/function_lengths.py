"""What ops that ONNX defines by functions need of lengths, where the ops of the function's body need less."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlirt.dialects.length_requirements import equal
from mlirt.frontend.onnx.network import Network
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.run_time_sizes import require_lengths


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


_CHECKS: Mapping[str, Callable[[Network, Node], None]] = {
    "NegativeLogLikelihoodLoss": _loss,
    "SoftmaxCrossEntropyLoss": _loss,
}
