"""EngineInspector: the layers of an engine as text (features 17.1 to 17.4)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from mlirt.errors import InvalidInputError
from mlirt.tensorrt.build_enums import ProfilingVerbosity
from mlirt.tensorrt.reporting import Reporting
from mlirt.tensorrt.run_enums import LayerInformationFormat

if TYPE_CHECKING:
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.runtime.api.execution_context import IExecutionContext


class EngineInspector(Reporting):
    """Names of layers, or all that the plan knows of them, as the build's profiling verbosity allows."""

    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self.reporter = engine.reporter
        self.execution_context: IExecutionContext | None = None

    def get_layer_information(self, layer_index: int, format: LayerInformationFormat) -> str:
        """One layer; raises `InvalidInputError` for an index that is none."""
        if not 0 <= layer_index < self._engine.num_layers:
            raise InvalidInputError(f"there is no layer {layer_index}; the engine has {self._engine.num_layers}")
        layer = self._layer(layer_index)
        return json.dumps(layer) if format is LayerInformationFormat.JSON else _oneline(layer)

    def get_engine_information(self, format: LayerInformationFormat) -> str:
        """All layers, and in JSON the inputs and outputs, and who decides about branches and loops."""
        verbosity = self._engine.profiling_verbosity
        count = 0 if verbosity is ProfilingVerbosity.NONE else self._engine.num_layers
        layers = [self._layer(index) for index in range(count)]
        if format is LayerInformationFormat.ONELINE:
            return "\n".join(map(_oneline, layers))
        bindings = [] if verbosity is ProfilingVerbosity.NONE else self._engine.tensor_names
        found = {"Layers": layers, "Bindings": bindings}
        if verbosity is not ProfilingVerbosity.NONE and self._engine.engine.decisions:
            found["Decisions"] = [asdict(decision) for decision in self._engine.engine.decisions]
        return json.dumps(found)

    def _layer(self, index: int) -> object:
        record = self._engine.engine.layers[index]
        verbosity = self._engine.profiling_verbosity
        if verbosity is ProfilingVerbosity.NONE:
            return ""
        name = str(record.get("name", ""))
        if verbosity is ProfilingVerbosity.LAYER_NAMES_ONLY:
            return name
        others = {key: value for key, value in record.items() if key not in ("name", "family")}
        return {"Name": name, "LayerType": record.get("family"), **others}


def _oneline(layer: object) -> str:
    return layer if isinstance(layer, str) else json.dumps(layer)
