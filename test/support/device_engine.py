"""Networks of fused ops as engines on the GPU of this machine."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.builder.plan_writer.manifest import manifest_of, weight_keys
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.context import RtContext
from mlirt.passes.pipeline import run_passes
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import make_plan

Array = np.ndarray[Any, np.dtype[Any]]


def engine_of(text: str, tactic: str = "") -> Engine:
    """The engine of a network of fused ops, its kernels compiled here."""
    module, context = parse_module(text)
    chosen = f" tactic={tactic}" if tactic else ""
    steps = f"convert-fused-to-kernel{{target=cuda{chosen}}},map-parallel-to-threads"
    steps += ",start-launches-early,plan-memory,verify-memory-plan"
    run_passes(module, context, steps)
    manifest = manifest_of(module)
    manifest["target"] = {"kind": "cuda", "triple": "", "features": [], "vector_bits": 128, "arch": "sm_90a"}
    cubins = compile_kernels(sources_of(module))
    sections: dict[str, bytes] = {}
    objects: dict[str, dict[str, str]] = {}
    for kernel, by_architecture in cubins.items():
        objects[kernel] = {architecture: f"{kernel}.{architecture}" for architecture in by_architecture}
        sections |= {objects[kernel][architecture]: one.code for architecture, one in by_architecture.items()}
    records = cast("list[dict[str, Any]]", manifest["kernels"])
    manifest["kernels"] = [{**record, "object": objects[record["name"]]} for record in records]
    return Engine(make_plan(manifest, sections, _weights(module, context)))


def _weights(module: ModuleOp, context: RtContext) -> dict[str, Array]:
    needed = set(weight_keys(module))
    return {key: array for key, array in context.weights.items() if key in needed}
