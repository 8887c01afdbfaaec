"""Greedy choice among overlapping boxes, which come in the order of preference."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def kept_boxes(boxes: Array, allowed: Array, limit: int, threshold: float) -> Array:
    """Which boxes of each group stay: allowed ones that overlap no earlier one that stays by more than `threshold`.

    `boxes` is G x N x 4 with corners y1 <= y2, x1 <= x2 as (y1, x1, y2, x2), `allowed` is G x N. At most `limit` stay
    in each group.
    """
    import numpy as np

    kept = np.zeros(allowed.shape, np.bool_)
    for group, place in np.argwhere(allowed):
        others = boxes[group][kept[group]].astype(np.float32)
        hidden = _overlaps(boxes[group, place].astype(np.float32), others, threshold).any()
        kept[group, place] = len(others) < limit and not hidden
    return kept


def _overlaps(box: Array, others: Array, threshold: float) -> Array:
    """Whether the common area of a box and each other one, divided by the area of both together, is larger."""
    import numpy as np

    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.maximum(high - low, 0).prod(1)
    area = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - common
    with np.errstate(divide="ignore", invalid="ignore"):
        return (common > 0) & (common / area > np.float32(threshold))
