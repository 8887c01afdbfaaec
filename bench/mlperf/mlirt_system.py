"""This project as a system under test: an ONNX file, `mlirt.compile`, a stream for each batch at once."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import mlirt
from mlirt.runtime.engine import Engine
from mlperf.systems import Array, Outputs, Request


def plan_path(request: Request) -> Path:
    """Where the plan of a request is kept."""
    rows = f"b{request.most}" if request.is_fixed else f"b{request.least}-{request.most}"
    chosen = "estimated." if request.heuristic else ""
    return request.folder / f"{request.model.stem}.{rows}.{request.device}.{request.precision}.{chosen}plan"


def build(request: Request) -> Path:
    """Build the plan, unless it is there and younger than the model."""
    path = plan_path(request)
    if path.exists() and path.stat().st_mtime > request.model.stat().st_mtime:
        return path
    profiles = None
    if not request.is_fixed or request.lengths is not None:
        rows = (request.least, max(request.least, request.most // 2), request.most)
        lengths = request.lengths or (0, 0, 0)
        inputs = onnx.load(str(request.model), load_external_data=False).graph.input
        profiles = {
            value.name: [(count, *_sizes(value, length)) for count, length in zip(rows, lengths, strict=True)]
            for value in inputs
        }
    source = str(request.model)
    precision = request.precision
    if (request.device, precision) == ("cuda", "int8"):
        precision = "int8+fp16"  # what is not quantised
    mlirt.compile(source, request.device, precision, profiles, heuristic=request.heuristic).save(path)
    return path


def _sizes(value: onnx.ValueInfoProto, length: int) -> tuple[int, ...]:
    """All dimensions but the first; those that have a name are `length`."""
    return tuple(length if dim.dim_param else dim.dim_value for dim in value.type.tensor_type.shape.dim[1:])


class MlirtSystem:
    """An engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def runs_at_once(self) -> int:
        return self._engine.streams

    @property
    def joins_arrays(self) -> bool:
        return self._engine.joins_arrays

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return self._engine.host_array(shape, dtype)

    def run(self, feeds: Mapping[str, Array]) -> Outputs:
        return self._engine.run(feeds)

    def close(self) -> None:
        """Nothing: the engine ends with its last user."""


def opened(request: Request) -> MlirtSystem:
    """Build the plan where there is none, and load it."""
    engine = mlirt.load(build(request), threads=request.threads, streams=request.runs_at_once)
    return MlirtSystem(engine)
