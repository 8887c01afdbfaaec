"""Reads a plan's layers with TensorRT's Engine Explorer: python -m mlirt.as_tensorrt bench/client_trex.py PLAN

Exits with 1 unless every layer has a type, each tensor a precision and a format, and at least one layer a kernel.
"""

# Neither the Explorer nor what stands for TensorRT has types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import types
from pathlib import Path


def main(plan: str) -> int:
    """Show what the Explorer finds in the plan."""
    graph = _layers(Path(plan))
    engine = _explorer("engine_plan").EnginePlan(str(graph))
    problems = []
    kernels = 0
    for layer in engine.all_layers:
        if not layer.type or layer.type == "None":
            problems.append(f"{layer.name} has no type")
        kernels += bool(layer.raw_dict.get("TacticName"))
        for tensor in (*layer.inputs, *layer.outputs):
            if not tensor.precision or tensor.precision == "Unknown" or not tensor.format:
                problems.append(f"{layer.name}: {tensor.name} is {tensor.precision} in {tensor.format}")
    if engine.all_layers and not kernels:
        problems.append("no layer has a kernel")
    print(f"{len(engine.all_layers)} layers, {kernels} kernels, {len(engine.bindings)} bindings")
    print("\n".join(f"Error: {problem}" for problem in problems))
    return int(bool(problems))


def _layers(plan: Path) -> Path:
    """The inspector's JSON of a plan, in a file beside it."""
    trt = importlib.import_module("tensorrt")
    engine = trt.Runtime(trt.Logger(trt.Logger.WARNING)).deserialize_cuda_engine(plan.read_bytes())
    found = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    path = plan.with_suffix(".graph.json")
    path.write_text(json.dumps(json.loads(found)))
    return path


def _explorer(module: str) -> types.ModuleType:
    """A module of the Explorer, without its package's notebook, which needs Jupyter."""
    spec = importlib.util.find_spec("trex")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError("TensorRT's Engine Explorer is not installed")
    package = types.ModuleType("trex")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["trex"] = package
    return importlib.import_module(f"trex.{module}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
