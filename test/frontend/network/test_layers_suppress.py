"""Non-maximum suppression through the network API (tensorrt-features.md#1.44)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layer_networks import constant, evaluate, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

Array = np.ndarray[Any, np.dtype[Any]]

CORNERS = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, -0.1, 1, 0.9]], np.float32)[None]
CENTRES = np.concatenate([(CORNERS[..., :2] + CORNERS[..., 2:]) / 2, CORNERS[..., 2:] - CORNERS[..., :2]], 2)
SCORES = np.array([[0.9, 0.75, 0.6, 0.3], [0.1, 0.2, 0.3, 0.0]], np.float32).T[None]


def suppressed(boxes: np.ndarray, most: int, *thresholds: float) -> tuple[trt.INetworkDefinition, trt.INMSLayer]:
    network = new_network()
    given = [network.add_input(name, trt.float32, array.shape) for name, array in (("b", boxes), ("s", SCORES))]
    layer = network.add_nms(given[0], given[1], constant(network, np.array(most, np.int32)))
    for k, threshold in enumerate(thresholds):
        layer.set_input(3 + k, constant(network, np.array(threshold, np.float32)))
    for k in range(2):
        network.mark_output(layer.get_output(k))
    return network, layer


@pytest.mark.parametrize("kind", trt.BoundingBoxFormat)
def test_boxes_that_overlap_go(kind: trt.BoundingBoxFormat) -> None:
    boxes = CENTRES if kind is trt.BoundingBoxFormat.CENTER_SIZES else CORNERS
    network, layer = suppressed(boxes, 3, 0.5, 0.15)
    layer.bounding_box_format = kind
    assert [layer.get_output(k).dtype for k in range(2)] == [trt.int32, trt.int32]
    assert (layer.get_output(0).shape, layer.get_output(1).shape) == ((-1, 3), ())
    found, count = evaluate(network, {"b": boxes, "s": SCORES})
    np.testing.assert_array_equal(found, [[0, 0, 0], [0, 0, 2], [0, 1, 2], [0, 1, 1]])
    assert count == 4


def test_so_many_of_a_class() -> None:
    network, _ = suppressed(CORNERS[:, :, None], 1, 0.5)
    found, count = evaluate(network, {"b": CORNERS[:, :, None], "s": SCORES})
    np.testing.assert_array_equal(found, [[0, 0, 0], [0, 1, 2]])
    assert count == 2


def by_hand(boxes: Array, scores: Array, most: int, overlap: float, limit: int) -> list[list[int]]:
    """(batch, class, box) of what stays, of the `limit` best boxes of each class."""
    found: list[list[int]] = []
    for batch, one in enumerate(scores):
        for kind, of in enumerate(one.T):
            stays: list[int] = []
            for box in np.argsort(-of, kind="stable")[:limit]:
                if len(stays) < most and all(_overlap(boxes[batch, box], boxes[batch, k]) <= overlap for k in stays):
                    stays.append(int(box))
            found += [[batch, kind, box] for box in stays]
    return found


def _overlap(one: Array, other: Array) -> float:
    """Intersection over union."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    shared = float(np.prod(np.maximum(sides, 0)))
    return shared / float(np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]) - shared)


@pytest.mark.parametrize(("limit", "boxes"), [(1, 30), (3, 30), (7, 30), (30, 30), (31, 30), (5, 1)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_only_the_best_boxes_of_a_class_are_looked_at(limit: int, boxes: int, dynamic: bool) -> None:
    rng = np.random.default_rng(limit)
    corners = rng.uniform(0, 1, (2, boxes, 2)).astype(np.float32)
    feeds = {
        "b": np.concatenate([corners, corners + np.float32(0.4)], 2),
        "s": rng.integers(1, 9, (2, boxes, 3)).astype(np.float32),  # many are equal
    }
    network = new_network()
    shapes = {name: (2, -1, array.shape[2]) if dynamic else array.shape for name, array in feeds.items()}
    given = [network.add_input(name, trt.float32, shape) for name, shape in shapes.items()]
    layer = network.add_nms(given[0], given[1], constant(network, np.array(4, np.int32)))
    layer.set_input(3, constant(network, np.array(0.3, np.float32)))
    layer.topk_box_limit = limit
    for k in range(2):
        network.mark_output(layer.get_output(k))
    want = by_hand(feeds["b"], feeds["s"], 4, 0.3, limit)
    found, count = evaluate(network, feeds)
    np.testing.assert_array_equal(found, want)
    assert count == len(want)


def test_the_usual_limit_takes_more_boxes_than_that() -> None:
    network = new_network()
    given = [network.add_input(name, trt.float32, (1, 6000, size)) for name, size in (("b", 4), ("s", 1))]
    layer = network.add_nms(given[0], given[1], constant(network, np.array(6000, np.int32)))
    layer.set_input(3, constant(network, np.array(1, np.float32)))
    network.mark_output(layer.get_output(1))
    scores = np.random.default_rng(0).permutation(6000).astype(np.float32).reshape(1, 6000, 1)
    (count,) = evaluate(network, {"b": np.tile(np.array([0, 0, 1, 1], np.float32), (1, 6000, 1)), "s": scores})
    assert count == layer.topk_box_limit == 5000


def test_a_limit_of_no_boxes_is_refused() -> None:
    network, layer = suppressed(CORNERS, 1)
    layer.topk_box_limit = 0
    with pytest.raises(InvalidModelError, match="topk_box_limit is 0, expected at least 1"):
        output_of(network, layer, {})
