"""How large the numbers of each channel of a tensor are, as calibration found it, and what is made of it.

A module carries it as `trt.channels = {"tensor name" = [dense<[least]>, dense<[greatest]>, dense<[means]>], ..}`.
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
MIN_SHARE = 1 / 16
"""Of the tensor's range that a channel has at least: samples that are to come may hold more than those that came."""
EVEN = 1 / 2
"""Channels whose shares are all as large have one scale: at most one bit of it would be won."""
ZEROS = range(-128, 128)
WORTHWHILE = 1.25
"""How many times smaller the mean square of the steps has to be for a zero point other than 0."""


@dataclass(frozen=True, eq=False)
class ChannelStatistics:
    """Of each channel the least and the greatest number that came, and the mean of all; float32 and 1-D."""

    least: Array
    greatest: Array
    means: Array

    def needs(self, range_: float, zero: int) -> Array:
        """The scale that each channel needs so that int8 with a zero point reach all that came.

        What lies beyond the tensor's range is clipped. Infinite where bytes are to reach a number on that side of zero
        on which they have none.
        """
        import numpy as np

        sides = ((self.greatest, 127 - zero), (-self.least, 128 + zero if zero else 127))
        found = np.zeros(len(self.means))
        for reach, count in sides:
            wanted = np.clip(reach.astype(np.float64), 0, range_)
            found = np.maximum(found, wanted / count if count else np.where(wanted > 0, np.inf, 0))
        return found

    def best_zero(self, range_: float) -> int:
        """The zero point with which the steps are smallest; 0 where another one would hardly be better."""
        import numpy as np

        costs = {zero: float(np.square(self.needs(range_, zero)).sum()) for zero in ZEROS}
        best = min(costs, key=lambda zero: (costs[zero], abs(zero)))
        return best if costs[best] * WORTHWHILE < costs[0] else 0


def shares_of(needs: Array) -> Array | None:
    """The part of the largest scale that each channel has, float32 in (0, 1]; None where all need about all of it."""
    import numpy as np

    top = needs.max(initial=0)
    if not 0 < top < float("inf"):
        return None
    shares = np.clip(needs / top, MIN_SHARE, 1)
    return None if shares.min() >= EVEN else shares.astype(np.float32)


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


def is_padded(op: Operation) -> bool:
    """Whether a product reads cells around its first operand, which hold the zero point then."""
    return isinstance(op, ConvolutionOp) and any(pre or post for pre, post in op.written_padding())


def set_channels(module: ModuleOp, channels: Mapping[str, ChannelStatistics]) -> None:
    """Let a module carry the statistics of its tensors by name."""
    if channels:
        module.attributes[CHANNELS] = DictionaryAttr({name: _attribute(one) for name, one in channels.items()})


def _attribute(known: ChannelStatistics) -> Attribute:
    return ArrayAttr([_dense(part) for part in (known.least, known.greatest, known.means)])


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
    if len(lists) != 3 or len(parts) != 3 or len({one.shape for one in lists}) > 1:
        raise InvalidInputError(f"{CHANNELS}: tensor {name!r}: expected 3 lists of equally many numbers, got {value}")
    return ChannelStatistics(*lists)


def _array(value: Numbers) -> Array:
    import numpy as np

    return np.asarray(list(value.get_values()), np.float32)


def _dense(array: Array) -> Numbers:
    import numpy as np

    content = np.ascontiguousarray(array, np.float32)
    return DenseIntOrFPElementsAttr(TensorType(f32, [len(content)]), BytesAttr(content.tobytes()))
