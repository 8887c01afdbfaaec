"""The range of each tensor of a network: how far its numbers reach on either side of zero, as calibration found it.

A module carries it as `trt.ranges = {"tensor name" = 1.5 : f64, ..}`. A scale is the range divided by 127.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, ModuleOp, f64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.tensor_names import RANGES, aliases, tensor_names
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.channel_statistics import CHANNELS, ChannelStatistics, channels_in, set_channels

MAX_INT8 = 127.0


def set_ranges(
    module: ModuleOp, ranges: Mapping[str, float], channels: Mapping[str, ChannelStatistics] | None = None
) -> None:
    """Let a module carry the ranges of its tensors by name, and what is known of their channels."""
    module.attributes[RANGES] = DictionaryAttr({name: FloatAttr(value, f64) for name, value in ranges.items()})
    set_channels(module, channels or {})


def add_range(module: ModuleOp, name: str, value: float) -> None:
    """Let a module carry the range of one more tensor."""
    ranges = {**ranges_in(module), name: value}
    module.attributes[RANGES] = DictionaryAttr({one: FloatAttr(number, f64) for one, number in ranges.items()})


def take_ranges(module: ModuleOp) -> dict[str, Attribute]:
    """What a module carries of its tensors, which it does not do any more; `module.attributes` takes it back."""
    return {name: module.attributes.pop(name) for name in (RANGES, CHANNELS) if name in module.attributes}


def ranges_in(module: ModuleOp) -> dict[str, float]:
    """The ranges that a module carries; raises `InvalidInputError` for what is no range."""
    found = module.attributes.get(RANGES)
    if found is None:
        return {}
    if not isinstance(found, DictionaryAttr):
        raise InvalidInputError(f"{RANGES}: expected a dictionary of tensor names, got {found}")
    return {name: _range(name, value) for name, value in found.data.items()}


def _range(name: str, value: object) -> float:
    number = cast("FloatAttr[Any]", value).value.data if isinstance(value, FloatAttr) else -1.0
    if not 0 <= number < float("inf"):
        raise InvalidInputError(f"{RANGES}: tensor {name!r}: expected a number that is not negative, got {value}")
    return number


class TensorRanges:
    """Looks ranges up by value: under the tensor's name, under the output's that it is, or through what keeps them."""

    def __init__(self, module: ModuleOp, ranges: Mapping[str, float]) -> None:
        self.names = tensor_names(module)
        self._ranges = ranges
        self._channels = channels_in(module)
        self._outputs: dict[SSAValue, str] = {value: name for name, value in aliases(module).items()}

    def name(self, value: SSAValue) -> str:
        return self.names.get(value) or "constant"

    def scale(self, value: SSAValue) -> float:
        """What one step of a byte stands for in a tensor that has a range; any number fits a tensor of zeros."""
        return (self.of(value) or 0.0) / MAX_INT8 or 1.0

    def channels(self, value: SSAValue) -> ChannelStatistics | None:
        """What is known of the channels of a tensor."""
        known = [self._channels[name] for name in self._names(value) if name in self._channels]
        return known[0] if known else None

    def _names(self, value: SSAValue) -> list[str]:
        return [name for name in (self.names.get(value), self._outputs.get(value)) if name is not None]

    def of(self, value: SSAValue) -> float | None:
        """The range of a tensor; None where nobody gave one, and it does not follow from its operands' either."""
        for name in self._names(value):
            if name in self._ranges:
                return self._ranges[name]
        sources = _sources(value.owner) if isinstance(value.owner, Operation) else ()
        found = [self.of(source) for source in sources]
        known = [one for one in found if one is not None]
        return max(known) if known and len(known) == len(found) else None


def _sources(op: Operation) -> tuple[SSAValue, ...]:
    """The operands whose numbers the result of a layer has, and no others but 0."""
    if isinstance(op, ShuffleOp | SliceOp | ResizeOp | GatherOp):
        return (op.operands[0],)
    if isinstance(op, PoolingOp) and op.kind.data is PoolingKind.MAX:
        return (op.operands[0],)
    if isinstance(op, ActivationOp) and op.kind.data is ActivationKind.RELU:
        return (op.operands[0],)
    return tuple(op.operands) if isinstance(op, ConcatenationOp) else ()
