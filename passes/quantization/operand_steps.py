"""How finely each tensor that products read is rounded to 8 bits: one step for all of it, or one for each channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.quantization.channel_statistics import input_channel_axis, is_padded, shares_of
from mlirt.passes.quantization.commuting_layers import movement_of
from mlirt.passes.quantization.tensor_ranges import TensorRanges

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array, TensorOp

UNEQUAL = 1 / 4
"""The part of the bytes' range with which a joined tensor has 6 bits or less: too few for one step for all."""


@dataclass(frozen=True, eq=False)
class Steps:
    """A byte q stands for `(q - zero) * scale`, in channel c of `axis` for that times `shares[c]`.

    `means` has the mean number of each channel where it is known.
    """

    scale: float
    axis: int | None = None
    shares: Array | None = None
    means: Array | None = None
    zero: int = 0


class OperandSteps:
    """`of(value)`: the steps of a tensor, for all the layers that read its bytes."""

    def __init__(self, ranges: TensorRanges, layers: Mapping[TensorOp, tuple[int, ...]]) -> None:
        self._ranges = ranges
        self._readers: dict[SSAValue, list[TensorOp]] = {}
        for layer, positions in layers.items():
            for position in positions:
                self._readers.setdefault(layer.operands[position], []).append(layer)

    def of(self, value: SSAValue) -> Steps:
        """One step for each channel where all readers are products that sum over the same channels.

        Their weights take up what the channels differ by. An addition would have to multiply once more for it; and
        where a layer only moves numbers, bytes with one step could be moved in their place, unless it joins tensors
        of which one would lose by it. A zero point other than 0 costs a product a constant, and padding more than that.
        """
        scale = self._ranges.scale(value)
        known, readers = self._ranges.channels(value), self._readers.get(value, ())
        axes = {input_channel_axis(reader) for reader in readers}
        axis = axes.pop() if len(axes) == 1 else None
        if known is None or axis is None or dims(value.type)[axis] != len(known.means):
            return Steps(scale)
        range_ = self._ranges.of(value) or 0.0
        zero = 0 if any(map(is_padded, readers)) else known.best_zero(range_)
        needs = known.needs(range_, zero)
        top = float(needs.max(initial=0)) if zero else scale
        has_one_step = _moves_int8(value.owner) and not _joins_unequal(value.owner, axis, needs)
        return Steps(top or 1.0, axis, None if has_one_step else shares_of(needs), known.means, zero)


def _moves_int8(owner: Operation | Block) -> bool:
    """Whether a layer would rather move bytes than numbers; transposes and reshapes are part of what is around them."""
    return isinstance(owner, Operation) and movement_of(owner) is not None and not isinstance(owner, ShuffleOp)


def _joins_unequal(owner: Operation | Block, axis: int, needs: Array) -> bool:
    """Whether a layer lays tensors side by side along `axis`, one of which would use a small part of all bytes only.

    Its readers then read numbers that are rounded for them, channel by channel, in place of bytes that were joined.
    """
    import numpy as np

    if not isinstance(owner, ConcatenationOp) or owner.axis.value.data != axis:
        return False
    lengths = [dims(part.type)[axis] for part in owner.operands]
    ends = np.cumsum([length for length in lengths if isinstance(length, int)])
    parts = np.split(needs, ends[:-1]) if len(ends) == len(lengths) else []
    return any(0 < part.max(initial=0) < UNEQUAL * needs.max() for part in parts)
