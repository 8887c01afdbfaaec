"""Runs a network on sample data and looks at the channels of what its products read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, ModuleOp, i64
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from mlirt.builder.build import BuildOptions, build
from mlirt.builder.calibration.histogram import Array
from mlirt.builder.calibration.observed_network import element_counts, return_also
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.tensor_names import tensor_names
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.reduce import ReduceKind, ReduceKindAttr, ReduceOp
from mlirt.passes.quantization.channel_statistics import ChannelStatistics, input_channel_axis
from mlirt.passes.quantization.integer_operands import weight_axis
from mlirt.runtime.engine import Engine

_REDUCTIONS = {"least": ReduceKind.MIN, "greatest": ReduceKind.MAX, "mean": ReduceKind.AVG}


@dataclass
class _Channels:
    """What has come of one tensor."""

    least: Array
    greatest: Array
    total: Array
    cells: int


@dataclass
class ChannelCollection:
    """An engine that reduces each tensor to its channels; `add` runs it on a batch."""

    module: ModuleOp
    ctx: RtContext
    target: str
    _engine: Engine | None = None
    _found: dict[str, _Channels] = field(default_factory=dict[str, _Channels])

    def add(self, feeds: Mapping[str, Array]) -> None:
        """Look at a batch, whose tensors have been found to hold no NaN."""
        names = observed_channels(self.module)
        if not names:
            return
        if self._engine is None:
            network = with_channel_outputs(self.module, names)
            self._engine = build(network, self.ctx, self.target, BuildOptions(name="channels", first="quantization"))
        counts = element_counts(self.module, {name: array.shape for name, array in feeds.items()})
        found = self._engine.run(feeds)
        for name in names:
            least, greatest, mean = (found[_output(name, part)].astype(np.float64) for part in _REDUCTIONS)
            cells = max(counts[name] // len(mean), 1)
            one = self._found.setdefault(name, _Channels(least, greatest, np.zeros(len(mean)), 0))
            one.least, one.greatest = np.minimum(one.least, least), np.maximum(one.greatest, greatest)
            one.total += mean * cells
            one.cells += cells

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
        if axis is not None and isinstance(dims(op.operands[0].type)[axis], int) and op.operands[0] in names:
            found[names[op.operands[0]]] = axis
    return found


def with_channel_outputs(module: ModuleOp, axes: Mapping[str, int]) -> ModuleOp:
    """A copy of a network that gives the least, greatest and mean number of each channel of some of its tensors."""
    copy = module.clone()
    function = entry_function(copy)
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    values = {name: value for value, name in tensor_names(copy).items()}
    added: dict[str, SSAValue] = {}
    for name, axis in axes.items():
        others = [k for k in range(rank(values[name].type)) if k != axis]
        for part, kind in _REDUCTIONS.items():
            properties = {
                "kind": ReduceKindAttr(kind),
                "axes": DenseArrayBase.from_list(i64, others),
                "keep_dims": BoolAttr.from_bool(False),
            }
            reduce = ReduceOp.build_inferred([values[name]], properties)
            function.body.block.insert_op_before(reduce, last)
            added[_output(name, part)] = reduce.output
    return_also(function, last, added)
    return copy


def _output(name: str, part: str) -> str:
    return f"{name}: {part}"
