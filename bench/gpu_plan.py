"""A plan of a lowered network and the cubins of its kernels."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlirt.dialects.plan.manifest import manifest_of, weight_keys
from mlirt.runtime.plan_file import Plan, make_plan

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.dialects.context import RtContext


def digest(text: str) -> str:
    """The name of a kernel's cubin in the bundle, from its source."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def plan_of(module: ModuleOp, context: RtContext, cubins: Mapping[str, Mapping[str, bytes]]) -> Plan:
    """`cubins` by kernel and architecture."""
    manifest = manifest_of(module)
    manifest["target"] = {"kind": "cuda", "triple": "", "features": [], "vector_bits": 128, "arch": "sm_90a"}
    sections: dict[str, bytes] = {}
    records = manifest["kernels"]
    assert isinstance(records, list)
    for record in records:
        kernel = record["name"]
        names = {architecture: f"{kernel}.{architecture}.cubin" for architecture in cubins[kernel]}
        sections |= {names[architecture]: code for architecture, code in cubins[kernel].items()}
        record.update(symbol=kernel, object=names)
    needed = set(weight_keys(module))
    return make_plan(manifest, sections, {key: array for key, array in context.weights.items() if key in needed})
