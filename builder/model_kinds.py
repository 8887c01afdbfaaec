"""What kind of model somebody has, and its name, found out without importing what reads it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from typing_extensions import TypeIs
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.model_network import ModelSource
    from mlirt.dialects.context import RtContext


class SourceNetwork(Protocol):
    """A model that knows how to become a network."""

    @property
    def name(self) -> str: ...

    def import_into(self, ctx: RtContext, *, keeps_weights: bool) -> ModuleOp:
        """The network as `func.func @main` in the `trt` dialect; weights go to the context's store."""
        ...


def is_source_network(model: object) -> TypeIs[SourceNetwork]:
    """Whether a model knows how to become a network."""
    return hasattr(model, "import_into")


def is_torch_model(model: object) -> bool:
    """Whether this is an `nn.Module` or an exported program; who has one has imported PyTorch."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = [getattr(getattr(torch, "nn", None), "Module", None)]
    export = sys.modules.get("torch.export.exported_program")
    kinds.append(getattr(export, "ExportedProgram", None))
    return isinstance(model, tuple(kind for kind in kinds if kind is not None))


def is_ir(model: object) -> bool:
    """Whether a model is a file of IR text."""
    return isinstance(model, str | os.PathLike) and Path(cast("str", model)).suffix == ".mlir"


def name_of_model(model: ModelSource | SourceNetwork) -> str:
    """The name of the graph, or of the model's file."""
    if isinstance(model, bytes):
        return "network"
    if is_source_network(model):
        return model.name
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        return path.parent.name if path.stem == "model" and path.parent.name else path.stem
    return model.graph.name or "network"
