"""Reads a plan's layers with TensorRT's Engine Explorer: python -m mlirt.as_tensorrt bench/client_trex.py PLAN

Exits with 1 unless every layer has a type, each tensor of a type and order that TensorRT 8 has a precision and a
format, and at least one layer a kernel. The others, such as INT64 inside of a network, the Explorer shows as unknown:
they are counted.
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

TYPES = ("Float", "Half", "Int8", "Int32", "Bool")
KNOWN = ("FP32", "FP16", "Int8", "INT8", "Int32", "BOOL")
"""The words for types in formats that the Explorer reads."""


def main(plan: str) -> int:
    """Show what the Explorer finds in the plan."""
    graph = _layers(Path(plan))
    engine = _explorer("engine_plan").EnginePlan(str(graph))
    problems: list[str] = []
    records = json.loads(graph.read_text())["Layers"]
    formats = {t["Name"]: t["Format/Datatype"] for r in records for t in (*r["Inputs"], *r["Outputs"])}
    kernels = tensors = other = 0
    for layer in engine.all_layers:
        if not layer.type or layer.type == "None":
            problems.append(f"{layer.name} has no type")
        kernels += bool(layer.raw_dict.get("TacticName"))
        for tensor in (*layer.inputs, *layer.outputs):
            tensors += 1
            given = formats[tensor.name]
            is_other = given in TYPES or not any(word in given for word in KNOWN)
            other += is_other
            if not is_other and (tensor.precision == "Unknown" or tensor.format == "Unknown format"):
                problems.append(f"{layer.name}: {tensor.name} is {tensor.precision} in {given}")
    if engine.all_layers and not kernels:
        problems.append("no layer has a kernel")
    print(json.dumps({"counts": {"failed" if problems else "passed": 1}}))
    print(f"{tensors} tensors, {other} in formats that TensorRT lacks")
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
