"""Non-maximum suppression by blocks, on the interpreter of GPU kernels: the boxes that stay are the reference's."""

from __future__ import annotations

import numpy as np
import pytest
from fused_network import Network, check, t
from xdsl.ir import SSAValue

from mlirt.dialects.fused.suppress import SuppressOp


@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize(("limit", "threshold"), [(100, 0.3), (3, 0.5), (0, 0.5), (100, 0.0)])
def test_the_same_boxes_stay(count: int, limit: int, threshold: float) -> None:
    rng = np.random.default_rng(count)
    low, size = rng.uniform(0, 5, (3, count, 2)), rng.uniform(0, 3, (3, count, 2))
    boxes = np.concatenate([low, low + size], 2).astype(np.float32)
    boxes[0, count // 2] = boxes[0, 0]
    boxes[1, count // 3, 2] = np.nan
    inputs = [boxes, rng.uniform(size=(3, count)) < 0.8, np.array(limit), np.array(threshold, np.float32)]

    def build(network: Network) -> list[SSAValue]:
        return [network.add(SuppressOp(*network.inputs))]

    check([t("float32", 3, count, 4), t("bool", 3, count), t("int64"), t("float32")], build, inputs)
