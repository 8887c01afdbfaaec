"""EngineInspector: the layers of an engine as text (tensorrt-features.md#17.1 to 17.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from mlirt.errors import InvalidInputError
from mlirt.runtime.layer_records import inspected, inspected_layer
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.reporting import Reporting
from mlirt.tensorrt.run_enums import LayerInformationFormat

if TYPE_CHECKING:
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.runtime.api.execution_context import IExecutionContext


class EngineInspector(Reporting, ContextManager):
    """Names of layers, or all that the plan knows of them, as the build's profiling verbosity allows."""

    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self.reporter = engine.reporter.of_its_own()
        self.execution_context: IExecutionContext | None = None
        self.fix_attributes()

    def get_layer_information(self, layer_index: int, format: LayerInformationFormat) -> str:
        """One layer; raises `InvalidInputError` for an index that is none."""
        if not 0 <= layer_index < self._engine.num_layers:
            raise InvalidInputError(f"there is no layer {layer_index}; the engine has {self._engine.num_layers}")
        layer = self._layer(layer_index)
        return json.dumps(layer) if format is LayerInformationFormat.JSON else _oneline(layer)

    def get_engine_information(self, format: LayerInformationFormat) -> str:
        """All layers, once for each profile as `num_layers` counts them.

        In JSON also the inputs and outputs, who decides about branches and loops, and the shapes kept.
        """
        engine, verbosity = self._engine, self._engine.profiling_verbosity.name
        found = inspected(engine.engine.layers, engine.tensor_names, verbosity, self._values(), engine.engine.profiles)
        once = cast("list[object]", found["Layers"])
        layers = [_of_profile(layer, profile) for profile in range(engine.counted_profiles) for layer in once]
        if format is LayerInformationFormat.ONELINE:
            return "\n".join(map(_oneline, layers))
        found["Layers"] = layers
        if verbosity != "NONE" and engine.engine.decisions:
            found["Decisions"] = [asdict(decision) for decision in engine.engine.decisions]
        if verbosity != "NONE" and self.execution_context is not None:
            found["ShapeCache"] = asdict(self.execution_context.shape_cache)
        return json.dumps(found)

    def _layer(self, index: int) -> object:
        layers, verbosity = self._engine.layers, self._engine.profiling_verbosity.name
        profile, place = divmod(index, max(len(layers), 1))
        return _of_profile(inspected_layer(layers[place], verbosity, self._values()), profile)

    def _values(self) -> dict[str, int]:
        """What the symbols of dynamic dimensions stand for, where a context has shapes (tensorrt-features.md#17.4)."""
        return {} if self.execution_context is None else self.execution_context.symbol_values()


def _of_profile(layer: object, profile: int) -> object:
    """A layer with the number of its profile behind its name, unless it is the first one (tensorrt-features.md#17.5).
    """
    if not profile or layer == "":
        return layer
    if not isinstance(layer, Mapping):
        return f"{layer} [profile {profile}]"
    told = cast("Mapping[str, object]", layer)
    return {**told, "Name": f"{told.get('Name', '')} [profile {profile}]"}


def _oneline(layer: object) -> str:
    return layer if isinstance(layer, str) else json.dumps(layer)
