"""What detectors end with: choices among boxes."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.length_requirements import equal
from mlirt.dialects.symbolic import minimum
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import coordinates, require_lengths, true_positions
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(net: Network, node: Node) -> Value:
    """(batch, class, box) of the boxes that stay, for each batch and class by descending score.

    The attribute `topk_box_limit` is that of TensorRT's layer: so many boxes of each class, those with the best scores,
    are looked at.
    """
    boxes, scores = node.input(0), layers.cast(net, node.input(1), "float32")
    if boxes.rank != 3 or scores.rank != 3 or boxes.dims[2] != 4:
        raise node.invalid(f"expected boxes B x N x 4 and scores B x C x N, got {boxes.type} and {scores.type}")
    batch, classes, count = scores.dims
    for what, expected, found in (("batch", boxes.dims[0], batch), ("number of boxes", boxes.dims[1], count)):
        fault = f"boxes have a {what} of {{left}}, scores one of {{right}}"
        require_lengths(net, node, equal("", "", expected, found, fault))
    groups, limit = batch * classes, node.integer("topk_box_limit", 0)
    most = minimum(count, limit) if limit else count
    so_many = {"k": most} if isinstance(most, int) else {"size": [most]}
    ranked, order = net.emit_many("topk", [scores], 2, kind="max", axis=2, sorted=True, **so_many)
    order = layers.cast(net, order, "int64")
    corners = layers.unsqueeze(net, _corners(net, node, layers.cast(net, boxes, "float32")), [1])
    everywhere = layers.reshape(net, layers.expand(net, corners, [batch, classes, count, 4]), [groups, count, 4])
    chosen = layers.reshape(net, order, [groups, most, 1])
    sorted_boxes = net.emit("gather", [everywhere, chosen], mode="nd", num_elementwise_dims=1)
    allowed = _above(net, node, layers.reshape(net, ranked, [groups, most]))
    settings = _setting(net, node, 2, "int64", 0), _setting(net, node, 3, "float32", 0)
    stays = net.emit("suppress", [sorted_boxes, allowed, *settings])
    positions = true_positions(net, stays, "boxes")
    rows = coordinates(net, [batch, classes, most], positions)
    flat = layers.reshape(net, order, [groups * most])
    box = net.emit("gather", [flat, positions], mode="default", axis=0)
    found = layers.concatenate(net, [layers.along(net, rows, 0, 0, 2), layers.unsqueeze(net, box, [0])], 0)
    return layers.transpose(net, found, [1, 0])


def _setting(net: Network, node: Node, k: int, element: str, default: float) -> Value:
    """An optional input with one element as a 0-D value."""
    given = node.optional(k)
    if given is None:
        return net.constant(np.array(default, element))
    return layers.reshape(net, layers.cast(net, given, element), [])


def _above(net: Network, node: Node, scores: Value) -> Value:
    """Whether scores exceed the threshold; without one all do."""
    if node.optional(4) is None:
        true = net.constant(np.ones((1, 1), np.bool_))
        return layers.expand(net, true, scores.dims)
    return layers.binary(net, "greater", scores, _setting(net, node, 4, "float32", 0))


def _corners(net: Network, node: Node, boxes: Value) -> Value:
    """Boxes by two corners, given in any order, or by centre and size, as (y1, x1, y2, x2) with ordered corners."""
    if node.integer("center_point_box", 0):
        centre, size = layers.along(net, boxes, 2, 0, 2), layers.along(net, boxes, 2, 2, 2)
        half = layers.binary(net, "prod", size, layers.scalar_like(net, 0.5, size))
        ends = [layers.binary(net, kind, centre, half) for kind in ("sub", "sum")]
    else:
        pair = [layers.along(net, boxes, 2, start, 2) for start in (0, 2)]
        ends = [layers.binary(net, kind, *pair) for kind in ("min", "max")]
    return layers.concatenate(net, ends, 2)
