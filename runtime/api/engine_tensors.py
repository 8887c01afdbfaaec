"""The inputs and outputs of an engine by TensorRT's rules: order, modes, shapes with -1, profiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from mlirt.errors import PlanError
from mlirt.runtime.known_profiles import known_lengths
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.tensor_formats import TensorLayout, layout_of
from mlirt.tensorrt.data_types import DataType, data_type
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorFormat, TensorIOMode

# For each profile the smallest, usual and largest values.
ShapeValues: TypeAlias = "Sequence[Sequence[Sequence[int]]]"


@dataclass(frozen=True)
class EngineTensor:
    """A public input or output; `shape_values` are what the profiles say of an input that is read as a shape.

    A `shape_output` is delivered as a shape, to the host's memory.
    """

    name: str
    mode: TensorIOMode
    dtype: DataType
    shape: Dims
    shape_values: ShapeValues | None = None
    format: TensorFormat = TensorFormat.LINEAR
    shape_output: bool = False
    largest: Sequence[object] = ()
    """Formulas of the largest lengths that data may give an output; none where the shapes of the inputs say all."""

    @property
    def is_shape(self) -> bool:
        """Whether it is a shape, on the host, rather than data."""
        return self.shape_values is not None or self.shape_output

    @property
    def is_input(self) -> bool:
        return self.mode is TensorIOMode.INPUT

    @property
    def is_dynamic_input(self) -> bool:
        """Whether a profile says what its lengths or its values may be."""
        return self.is_input and (-1 in self.shape or self.shape_values is not None)

    @property
    def layout(self) -> TensorLayout | None:
        """How it lies in memory; None where it is linear."""
        return layout_of(self.format.name)

    @property
    def vectorized_dim(self) -> int:
        """The dimension whose elements lie in vectors; -1 where there are none (tensorrt-features.md#5.4)."""
        layout = self.layout
        return -1 if layout is None or layout.lanes == 1 else layout.axis(len(self.shape))

    @property
    def components_per_element(self) -> int:
        """The elements of a vector; -1 where there are none."""
        layout = self.layout
        return -1 if layout is None or layout.lanes == 1 else layout.lanes

    def stored_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The dense array that holds the tensor when it has this shape."""
        return tuple(shape) if self.layout is None else self.layout.stored_shape(shape)

    def strides(self, shape: Sequence[int]) -> Dims:
        """Elements, or vectors where there are some, from one position to the next, for each axis
        (tensorrt-features.md#5.4).
        """
        if self.layout is not None:
            return Dims(self.layout.strides(shape))
        lengths = [max(length, 1) for length in shape]
        return Dims(math.prod(lengths[axis + 1 :]) for axis in range(len(lengths)))


def engine_tensors(manifest: Manifest) -> dict[str, EngineTensor]:
    """Inputs, then outputs, by name."""
    values = _shape_values(manifest)
    declared = _dynamic_inputs(manifest)
    inputs = [
        replace(_tensor(one, TensorIOMode.INPUT, values.get(one.name)), shape=declared[one.name])
        if one.name in declared
        else _tensor(one, TensorIOMode.INPUT, values.get(one.name))
        for one in manifest.given_inputs
    ]
    delivered = _shape_outputs(manifest)
    largest = _largest_outputs(manifest)
    outputs = [
        replace(
            _tensor(one, TensorIOMode.OUTPUT), shape_output=one.name in delivered, largest=largest.get(one.name, ())
        )
        for one in manifest.outputs
    ]
    return {one.name: one for one in (*inputs, *outputs)}


def _largest_outputs(manifest: Manifest) -> dict[str, Sequence[object]]:
    """What the builder noted of outputs whose lengths data decide; a plan that notes something else is refused."""
    noted = manifest.info.get("largest_outputs", {})
    if not isinstance(noted, Mapping):
        raise PlanError(f"plan manifest: info.largest_outputs: expected an object, got {type(noted).__name__}")
    found = cast("Mapping[str, object]", noted)
    return {name: cast("list[object]", lengths) for name, lengths in found.items() if isinstance(lengths, list)}


def _dynamic_inputs(manifest: Manifest) -> dict[str, Dims]:
    """The inputs with -1 as the network had them, also where a profile left no choice; else a plan is refused."""
    noted = manifest.info.get("dynamic_inputs", {})
    ranks = {one.name: len(one.known_shape) for one in manifest.given_inputs}
    if not isinstance(noted, Mapping):
        raise PlanError(f"plan manifest: info.dynamic_inputs: expected an object, got {type(noted).__name__}")
    found: dict[str, Dims] = {}
    for name, shape in cast("Mapping[str, object]", noted).items():
        lengths = cast("list[object]", shape) if isinstance(shape, list) else []
        if len(lengths) != ranks.get(name) or not all(isinstance(length, int) for length in lengths):
            raise PlanError(f"plan manifest: info.dynamic_inputs[{name!r}]: expected {ranks.get(name)} lengths")
        found[name] = Dims(cast("list[int]", lengths))
    return found


def _shape_outputs(manifest: Manifest) -> frozenset[object]:
    """The outputs that the builder noted as shapes; a plan that notes something else is refused."""
    noted = manifest.info.get("shape_outputs", [])
    if not isinstance(noted, list):
        raise PlanError(f"plan manifest: info.shape_outputs: expected names, got {type(noted).__name__}")
    return frozenset(one for one in cast("list[object]", noted) if isinstance(one, str))


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
    lengths = Dims(dim if isinstance(dim, int) else -1 for dim in of.known_shape)
    return EngineTensor(of.name, mode, data_type(of.dtype), lengths, values, TensorFormat[of.format])


def profile_shapes(manifest: Manifest, profile: int, name: str) -> list[Dims]:
    """The smallest, usual and largest shape of an input in a profile; its only one where it is not dynamic."""
    found = manifest.profiles[profile].get(name) if 0 <= profile < len(manifest.profiles) else None
    if found is None:
        own = engine_tensors(manifest)[name].shape
        return [] if -1 in own else [own] * 3
    tensor = next(one for one in manifest.given_inputs if one.name == name)
    return [Dims(known_lengths(tensor, shape)) for shape in (found.minimum, found.optimum, found.maximum)]
