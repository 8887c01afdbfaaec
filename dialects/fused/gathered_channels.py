"""Gathers that select channels of images, in an order that is known when the engine is built."""

from __future__ import annotations

from mlirt.dialects.blocked_layout import plain
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore

_CHANNELS = 1
_IMAGE = 4


def gathered_channels(op: GatherOp, store: WeightStore) -> list[int] | None:
    """For each channel of the result the one of the data, counted from 0; None for other gathers, and where one is out
    of range.
    """
    owner, sizes = op.indices.owner, dims(plain(op.data.type))
    if op.mode.data is not GatherMode.DEFAULT or op.axis.value.data != _CHANNELS or op.elementwise_dims:
        return None
    if not isinstance(owner, ConstantOp) or rank(op.indices.type) != 1 or len(sizes) != _IMAGE:
        return None
    count = sizes[_CHANNELS]
    found = [int(index) for index in owner.array(store)]
    if not isinstance(count, int) or not found or not all(-count <= index < count for index in found):
        return None
    return [index % count for index in found]
