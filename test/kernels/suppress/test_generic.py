"""The generic kernel of non-maximum suppression."""

from __future__ import annotations

import numpy as np
import pytest
from fused_network import Network, check, t
from xdsl.ir import SSAValue

from mlirt.dialects.fused.suppress import SuppressOp


@pytest.mark.parametrize("count", [0, 1, 7, 40])
@pytest.mark.parametrize(("limit", "threshold"), [(100, 0.3), (3, 0.5), (0, 0.5), (100, 0.0)])
def test_suppress(count: int, limit: int, threshold: float) -> None:
    rng = np.random.default_rng(count)
    low, size = rng.uniform(0, 5, (3, count, 2)), rng.uniform(0, 3, (3, count, 2))
    boxes = np.concatenate([low, low + size], 2).astype(np.float32)
    inputs = [boxes, rng.uniform(size=(3, count)) < 0.8, np.array(limit), np.array(threshold, np.float32)]

    def build(network: Network) -> list[SSAValue]:
        return [network.add(SuppressOp(*network.inputs))]

    check([t("float32", "g", "n", 4), t("bool", "g", "n"), t("int64"), t("float32")], build, inputs)
