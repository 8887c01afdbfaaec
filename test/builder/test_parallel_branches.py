"""Branches of a network are launches that need not wait for each other, and the joined tensor waits for all of them."""

from __future__ import annotations

from typing import cast

from branching_network import branching_network

from mlirt.builder.plan_writer.manifest import manifest_of
from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.launch_accesses import accesses_of
from mlirt.runtime.launch_order import predecessors
from mlirt.runtime.manifest_parser import parse_manifest
from mlirt.runtime.shape_binding import bind_shapes


def test_branches_wait_for_their_input_alone() -> None:
    context = RtContext()
    module = import_model(branching_network(), context, {}, None)
    run_phases(module, context, options=PipelineOptions("cuda", "fp32"))
    record = manifest_of(module)
    record["target"] = {"kind": "cuda", "arch": "sm_90a"}
    kernels = cast("list[dict[str, object]]", record["kernels"])
    record["kernels"] = [{**kernel, "object": "code"} for kernel in kernels]
    manifest = parse_manifest(record, ["code"], {key: array.nbytes for key, array in context.weights.items()})
    binding = bind_shapes(manifest, [(1, 32, 20, 20)])
    ends = {buffer: (1 << 40) * (buffer + 1) for buffer in range(len(manifest.buffers))}  # inputs and outputs lie apart
    bases = {**ends, **binding.offsets}
    waits = predecessors([accesses_of(launch, manifest, binding, bases) for launch in binding.launches])
    together = [number for number, needed in enumerate(waits) if needed != ((number - 1,) if number else ())]
    assert len(together) >= 6
    assert max(len(needed) for needed in waits) >= 3
