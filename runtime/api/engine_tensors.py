"""The inputs and outputs of an engine by TensorRT's rules: order, modes, shapes with -1, profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from mlirt.errors import PlanError
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.tensorrt.data_types import DataType, data_type
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorIOMode

# For each profile the smallest, usual and largest values.
ShapeValues: TypeAlias = "Sequence[Sequence[Sequence[int]]]"


@dataclass(frozen=True)
class EngineTensor:
    """A public input or output; `shape_values` are what the profiles say of an input that is read as a shape."""

    name: str
    mode: TensorIOMode
    dtype: DataType
    shape: Dims
    shape_values: ShapeValues | None = None

    @property
    def is_input(self) -> bool:
        return self.mode is TensorIOMode.INPUT


def engine_tensors(manifest: Manifest) -> dict[str, EngineTensor]:
    """Inputs, then outputs, by name."""
    values = _shape_values(manifest)
    inputs = [_tensor(one, TensorIOMode.INPUT, values.get(one.name)) for one in manifest.given_inputs]
    outputs = [_tensor(one, TensorIOMode.OUTPUT) for one in manifest.outputs]
    return {one.name: one for one in (*inputs, *outputs)}


def _shape_values(manifest: Manifest) -> dict[str, ShapeValues]:
    """What the builder noted of inputs that are read as shapes; a plan that notes something else is refused."""
    noted = manifest.info.get("shape_inputs", {})
    if not isinstance(noted, Mapping):
        raise PlanError(f"plan manifest: info.shape_inputs: expected an object, got {type(noted).__name__}")
    for name, profiles in cast("Mapping[object, object]", noted).items():
        levels = [profiles]
        for _ in range(3):
            if not all(isinstance(one, list) for one in levels):
                raise PlanError(f"plan manifest: info.shape_inputs[{name!r}]: expected values for each profile")
            levels = [one for level in levels for one in cast("list[object]", level)]
        if not all(isinstance(one, int) for one in levels):
            raise PlanError(f"plan manifest: info.shape_inputs[{name!r}]: expected whole numbers")
    return cast("dict[str, ShapeValues]", noted)


def _tensor(of: Tensor, mode: TensorIOMode, values: ShapeValues | None = None) -> EngineTensor:
    lengths = Dims(dim if isinstance(dim, int) else -1 for dim in of.shape)
    return EngineTensor(of.name, mode, data_type(of.dtype), lengths, values)


def profile_shapes(manifest: Manifest, profile: int, name: str) -> list[Dims]:
    """The smallest, usual and largest shape of an input in a profile; its only one where it is not dynamic."""
    found = manifest.profiles[profile].get(name) if 0 <= profile < len(manifest.profiles) else None
    if found is None:
        own = engine_tensors(manifest)[name].shape
        return [] if -1 in own else [own] * 3
    return [Dims(found.minimum), Dims(found.optimum), Dims(found.maximum)]
