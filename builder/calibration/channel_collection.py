"""Looks at the channels of what a network's products read, one batch at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ModuleOp, f32

from mlirt.builder.calibration.histogram import Array
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.tensor_names import tensor_names
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.passes.quantization.channel_statistics import ChannelStatistics, input_channel_axis
from mlirt.passes.quantization.integer_operands import weight_axis


@dataclass
class _Channels:
    """What has come of one tensor."""

    least: Array
    greatest: Array
    total: Array
    cells: int


@dataclass
class ChannelCollection:
    """The channels of some of a network's tensors. `axes` has the axis of each tensor's channels by its name."""

    axes: Mapping[str, int]
    _found: dict[str, _Channels] = field(default_factory=dict[str, _Channels])

    @classmethod
    def of(cls, module: ModuleOp) -> ChannelCollection:
        """For a cleaned network, of which nothing has come."""
        return cls(observed_channels(module))

    def add(self, name: str, array: Array) -> None:
        """Look at a tensor's numbers in a batch, which are no NaN."""
        others = tuple(axis for axis in range(array.ndim) if axis != self.axes[name])
        if array.size:
            parts = [array.min(others), array.max(others), array.sum(others, np.float64)]
            self.add_reduced(name, np.stack(parts, -1).astype(np.float64), array.size)

    def add_reduced(self, name: str, reduced: Array, elements: int) -> None:
        """The same from the least number, the greatest and the sum of each channel: float64 [channels, 3]."""
        least, greatest, total = reduced.T
        one = self._found.setdefault(name, _Channels(least, greatest, np.zeros(len(total)), 0))
        one.least, one.greatest = np.minimum(one.least, least), np.maximum(one.greatest, greatest)
        one.total = one.total + total
        one.cells += elements // len(total)

    def statistics(self) -> dict[str, ChannelStatistics]:
        """What has come, by the names of the tensors; those that hold infinities are left out."""
        return {
            name: ChannelStatistics(
                *(part.astype(np.float32) for part in (one.least, one.greatest, one.total / one.cells))
            )
            for name, one in self._found.items()
            if np.isfinite([one.least, one.greatest]).all()
        }


def observed_channels(module: ModuleOp) -> dict[str, int]:
    """The tensors of a cleaned network that products sum over, and the axis of each that these sum over."""
    names = tensor_names(module)
    found: dict[str, int] = {}
    for op in entry_function(module).body.block.ops:
        axis = None if weight_axis(op) is None else input_channel_axis(op)
        if axis is None or op.operands[0] not in names:
            continue
        tensor = op.operands[0].type
        if element_of(tensor) == f32 and isinstance(dims(tensor)[axis], int):
            found[names[op.operands[0]]] = axis
    return found
