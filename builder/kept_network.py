"""Puts a network into its plan: as text that one can read, and with its weights, to build it again with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.context import RtContext, weights_of
from mlirt.dialects.weights_file import weights_in
from mlirt.dialects.xdsl_compat import module_text
from mlirt.runtime import safetensors_section
from mlirt.runtime.kept_network import NETWORK, WEIGHTS

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def text_section(module: ModuleOp) -> dict[str, bytes]:
    """The section of a plan that has the network as it is now; large weights are names (tensorrt-features.md#21.8)."""
    return {NETWORK: module_text(module, debuginfo=True).encode()}


def network_sections(module: ModuleOp, ctx: RtContext) -> dict[str, bytes]:
    """The sections of a plan that hold the network as it is now, and its weights."""
    store = weights_of(ctx)
    arrays = {key: store.get(attr) for key, attr in weights_in(module).items()}
    return {**text_section(module), WEIGHTS: b"".join(safetensors_section.pieces(arrays))}
