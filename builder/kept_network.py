"""Puts a network into its plan, so that it can be built again with other weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.context import RtContext, weights_of
from mlirt.dialects.weights_file import weights_in
from mlirt.dialects.xdsl_compat import module_text
from mlirt.runtime import safetensors_section
from mlirt.runtime.kept_network import NETWORK, WEIGHTS

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def network_sections(module: ModuleOp, ctx: RtContext) -> dict[str, bytes]:
    """The sections of a plan that hold the network as it is now."""
    store = weights_of(ctx)
    arrays = {key: store.get(attr) for key, attr in weights_in(module).items()}
    text = module_text(module, debuginfo=True)
    return {NETWORK: text.encode(), WEIGHTS: b"".join(safetensors_section.pieces(arrays))}
