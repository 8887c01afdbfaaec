"""Which channel of an image stands where behind views and copies that only move channels. The table is pure; the walk
over the ops that it describes is at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, coefficient_of, substitute, symbols
from mlirt.dialects.tensor_types import dims, element_of, is_unknown
from mlirt.passes.fusion.view_composition import axis_groups

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

CHANNELS = -1
_IMAGE = 4
_CHANNEL = 1
# Tables are as long as there are channels; what has more is no image.
_MAX_CHANNELS = 2**16
# A shuffle is a view, a copy and a view; long chains of others are not walked again from each of their ops.
_MAX_MOVES = 8


@dataclass(frozen=True)
class ChannelTable:
    """A tensor that holds the elements of an image, moved along channels alone.

    `labels` says of each axis of the tensor that it is axis 0, 2 or 3 of the image, or part of its channels; axes of
    length 1 are such parts. `source` has the lengths of the parts, and at each place the channel that stands there.
    """

    labels: tuple[int, ...]
    lengths: tuple[Dim, ...]
    source: Array

    @staticmethod
    def of(lengths: Sequence[Dim]) -> ChannelTable | None:
        """The table of an image `[n, c, h, w]`; None for other tensors, and where the number of channels is unknown or
        not one of images.
        """
        import numpy as np

        count = lengths[_CHANNEL] if len(lengths) == _IMAGE else None
        if not isinstance(count, int) or count > _MAX_CHANNELS or any(map(is_unknown, lengths)):
            return None
        labels = tuple(CHANNELS if axis == _CHANNEL or size == 1 else axis for axis, size in enumerate(lengths))
        parts = [size for size, label in zip(lengths, labels, strict=True) if label == CHANNELS]
        return ChannelTable(labels, tuple(lengths), np.arange(count).reshape(_numbers(parts)))

    def viewed(self, lengths: Sequence[Dim]) -> ChannelTable | None:
        """Behind a view; None where it joins channels with other axes, or splits these."""
        labels: list[int] = []
        for olds, news in axis_groups(self.lengths, lengths):
            own = {self.labels[axis] for axis in olds}
            if own <= {CHANNELS} and all(isinstance(lengths[axis], int) for axis in news):
                labels += [CHANNELS] * len(news)
            elif len(olds) == len(news) == 1 and self.lengths[olds[0]] == lengths[news[0]]:
                labels += own
            else:
                return None
        if len(labels) != len(lengths):
            return None
        parts = [size for size, label in zip(lengths, labels, strict=True) if label == CHANNELS]
        return ChannelTable(tuple(labels), tuple(lengths), self.source.reshape(_numbers(parts)))

    def copied(self, access: AccessAttr, lengths: Sequence[Dim]) -> ChannelTable | None:
        """Behind a copy that reads the tensor with `access`; None where something else than channels is selected."""
        import numpy as np

        labels = [CHANNELS] * len(lengths)
        for index, label, size in zip(access.indices(), self.labels, self.lengths, strict=True):
            if label != CHANNELS:
                axis = next((k for k in range(len(lengths)) if index == iteration(k)), None)
                if axis is None or lengths[axis] != size:
                    return None
                labels[axis] = label
        parts = [axis for axis, label in enumerate(labels) if label == CHANNELS]
        if not all(isinstance(lengths[axis], int) for axis in parts):
            return None
        grid = np.indices(_numbers([lengths[axis] for axis in parts]))
        places = [
            _place(index, parts, grid)
            for index, label in zip(access.indices(), self.labels, strict=True)
            if label == CHANNELS
        ]
        if any(place is None for place in places):
            return None
        return ChannelTable(tuple(labels), tuple(lengths), self.source[tuple(places)])

    def channels(self) -> list[int] | None:
        """For each channel of the tensor the one of the image; None where the tensor is no image like that."""
        if len(self.labels) != _IMAGE or self.labels[_CHANNEL] != CHANNELS:
            return None
        stays = all(
            label == axis or (label == CHANNELS and self.lengths[axis] == 1)
            for axis, label in enumerate(self.labels)
            if axis != _CHANNEL
        )
        return [int(channel) for channel in self.source.reshape(-1)] if stays else None


def _numbers(lengths: Sequence[Dim]) -> list[int]:
    return [size for size in lengths if isinstance(size, int)]


def _place(index: Dim, parts: Sequence[int], grid: Array) -> Array | None:
    """An index for each place of the parts; None where it depends on something else."""
    import numpy as np

    names = {f"d{axis}": position for position, axis in enumerate(parts)}
    if not symbols(index) <= names.keys():
        return None
    origin = substitute(index, dict.fromkeys(names, 0))
    steps = {position: coefficient_of(index, name) for name, position in names.items()}
    if not isinstance(origin, int) or not all(isinstance(step, int) for step in steps.values()):
        return None
    found = np.full(grid.shape[1:], origin)
    for position, step in steps.items():
        found = found + grid[position] * step
    return found


def is_move(op: Operation) -> bool:
    """Whether an op gives elements of one tensor in another order, or under other dimensions."""
    if isinstance(op, ViewOp):
        return True
    if not isinstance(op, PointwiseOp) or len(op.inputs) != 1 or len(op.outputs) != 1:
        return False
    return is_identity(op.body)


def moves_before(op: Operation) -> list[Operation]:
    """The longest chain of moves that ends with an op, of a few of them, first one first."""
    chain: list[Operation] = []
    at: Operation | None = op
    while at is not None and is_move(at) and at.parent is op.parent and len(chain) < _MAX_MOVES:
        chain.append(at)
        owner = at.operands[0].owner
        at = owner if isinstance(owner, Operation) else None
    return chain[::-1]


def channels_of(chain: Sequence[Operation]) -> tuple[SSAValue, list[int]] | None:
    """The image of which the moves of a chain select channels, and those channels."""
    source, result = chain[0].operands[0], chain[-1].results[0]
    table = ChannelTable.of(dims(source.type))
    for op in chain:
        if table is None or element_of(op.results[0].type) != element_of(source.type):
            return None
        lengths = dims(op.results[0].type)
        table = table.copied(next(iter(op.access)), lengths) if isinstance(op, PointwiseOp) else table.viewed(lengths)
    found = None if table is None else table.channels()
    before, after = dims(source.type), dims(result.type)
    fits = found is not None and [*before[:1], *before[2:]] == [*after[:1], *after[2:]]
    return (source, found) if fits and found is not None else None
