"""The inputs and outputs of an engine by TensorRT's rules: order, modes, shapes with -1, profiles."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.tensorrt.data_types import DataType, data_type
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorIOMode


@dataclass(frozen=True)
class EngineTensor:
    """A public input or output."""

    name: str
    mode: TensorIOMode
    dtype: DataType
    shape: Dims

    @property
    def is_input(self) -> bool:
        return self.mode is TensorIOMode.INPUT


def engine_tensors(manifest: Manifest) -> dict[str, EngineTensor]:
    """Inputs, then outputs, by name."""
    inputs = [_tensor(one, TensorIOMode.INPUT) for one in manifest.inputs]
    outputs = [_tensor(one, TensorIOMode.OUTPUT) for one in manifest.outputs]
    return {one.name: one for one in (*inputs, *outputs)}


def _tensor(of: Tensor, mode: TensorIOMode) -> EngineTensor:
    lengths = Dims(dim if isinstance(dim, int) else -1 for dim in of.shape)
    return EngineTensor(of.name, mode, data_type(of.dtype), lengths)


def profile_shapes(manifest: Manifest, profile: int, name: str) -> list[Dims]:
    """The smallest, usual and largest shape of an input in a profile; its only one where it is not dynamic."""
    found = manifest.profiles[profile].get(name) if 0 <= profile < len(manifest.profiles) else None
    if found is None:
        own = engine_tensors(manifest)[name].shape
        return [] if -1 in own else [own] * 3
    return [Dims(found.minimum), Dims(found.optimum), Dims(found.maximum)]
