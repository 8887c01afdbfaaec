"""How large the numbers of each channel of a tensor are, as calibration found it, and what is made of it.

A module carries it as `trt.channels = {"tensor name" = [dense<[scales]>, dense<[means]>], ..}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    ModuleOp,
    TensorType,
    f32,
)
from xdsl.ir import Attribute, Operation

from mlirt.dialects.tensor_types import rank
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Numbers: TypeAlias = "DenseIntOrFPElementsAttr[Any]"

CHANNELS = "trt.channels"
SMALLEST_SHARE = 1 / 16
"""Of the tensor's range that a channel has at least: samples that are to come may hold more than those that came."""
EVEN = 1 / 2
"""Channels whose shares are all as large have one scale: at most one bit of it would be won."""


@dataclass(frozen=True, eq=False)
class ChannelStatistics:
    """Of each channel the largest magnitude that came, divided by 127, and the mean; both float32 and 1-D."""

    scales: Array
    means: Array

    def shares(self, scale: float) -> Array | None:
        """The part of a tensor's scale that each channel needs, float32 in (0, 1]; None where all need about all."""
        import numpy as np

        if not scale > 0:
            return None
        shares = np.clip(self.scales / np.float32(scale), np.float32(SMALLEST_SHARE), np.float32(1))
        return None if shares.min(initial=1) >= EVEN else shares.astype(np.float32)


def input_channel_axis(op: Operation) -> int | None:
    """The axis of a product's first operand that it sums over, where each of its results sums over all of it."""
    if isinstance(op, ConvolutionOp):
        return 1 if op.groups == 1 else None
    if isinstance(op, MatrixMultiplyOp) and op.lhs_op.data is not MatrixOperation.VECTOR:
        return rank(op.lhs.type) - (2 if op.lhs_op.data is MatrixOperation.TRANSPOSE else 1)
    return None


def weight_channel_axis(op: Operation) -> int:
    """The axis of a product's weights that meets the channels of its first operand."""
    if isinstance(op, MatrixMultiplyOp):
        return rank(op.rhs.type) - (1 if op.rhs_op.data is MatrixOperation.TRANSPOSE else 2)
    return 1


def set_channels(module: ModuleOp, channels: Mapping[str, ChannelStatistics]) -> None:
    """Let a module carry the statistics of its tensors by name."""
    if channels:
        entries = {name: ArrayAttr([_dense(one.scales), _dense(one.means)]) for name, one in channels.items()}
        module.attributes[CHANNELS] = DictionaryAttr(entries)


def channels_in(module: ModuleOp) -> dict[str, ChannelStatistics]:
    """The statistics that a module carries; raises `InvalidInputError` for what is none."""
    found = module.attributes.get(CHANNELS)
    if found is None:
        return {}
    if not isinstance(found, DictionaryAttr):
        raise InvalidInputError(f"{CHANNELS}: expected a dictionary of tensor names, got {found}")
    return {name: _statistics(name, value) for name, value in found.data.items()}


def _statistics(name: str, value: Attribute) -> ChannelStatistics:
    parts = list(cast("ArrayAttr[Attribute]", value)) if isinstance(value, ArrayAttr) else []
    lists = [_array(cast("Numbers", part)) for part in parts if isinstance(part, DenseIntOrFPElementsAttr)]
    if len(lists) != 2 or len(parts) != 2 or lists[0].shape != lists[1].shape:
        raise InvalidInputError(f"{CHANNELS}: tensor {name!r}: expected two lists of equally many numbers, got {value}")
    return ChannelStatistics(*lists)


def _array(value: Numbers) -> Array:
    import numpy as np

    return np.asarray(list(value.get_values()), np.float32)


def _dense(array: Array) -> Numbers:
    import numpy as np

    content = np.ascontiguousarray(array, np.float32)
    return DenseIntOrFPElementsAttr(TensorType(f32, [len(content)]), BytesAttr(content.tobytes()))
