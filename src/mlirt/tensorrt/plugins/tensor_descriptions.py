"""What a plugin is told of a tensor: shape, type, and how it lies in memory."""

from __future__ import annotations

from collections.abc import Iterable

from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorFormat

NO_SCALE = -1.0


class PluginTensorDesc:
    """A tensor that a plugin meets. `scale` means something for INT8 alone, and is -1 where it is not known."""

    def __init__(
        self,
        dims: Iterable[int] = (),
        type: DataType = DataType.FLOAT,
        format: TensorFormat = TensorFormat.LINEAR,
        scale: float = NO_SCALE,
    ) -> None:
        self.dims = Dims(dims)
        self.type = type
        self.format = format
        self.scale = scale

    def __repr__(self) -> str:
        return f"<PluginTensorDesc {self.dims} {self.type.name} {self.format.name}>"


class DynamicPluginTensorDesc:
    """The same with the least and the greatest lengths that it may have; -1 in `desc.dims` is what a run decides.

    Without a profile, lengths that a run decides are -1 in `min` and `max` too.
    """

    def __init__(
        self, desc: PluginTensorDesc | None = None, min: Iterable[int] | None = None, max: Iterable[int] | None = None
    ) -> None:
        self.desc = desc or PluginTensorDesc()
        self.min = Dims(self.desc.dims if min is None else min)
        self.max = Dims(self.desc.dims if max is None else max)
