"""Non-maximum suppression through the network API (row 1.44)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import constant, evaluate, new_network, output_of

import mlirt as trt
from mlirt.errors import UnsupportedError

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


def test_limit_of_boxes() -> None:
    network, layer = suppressed(CORNERS, 1)
    layer.topk_box_limit = 3
    with pytest.raises(UnsupportedError, match="4 boxes; topk_box_limit 3 must cover them all"):
        output_of(network, layer, {})
