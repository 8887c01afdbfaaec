"""An exported program as a model that `mlirt.compile` and `mlirt.calibrate` take."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError
from mlirt.frontend.torch.exporting import decomposed, exported
from mlirt.frontend.torch.importer import CallingConvention, dimension_names, import_program


class ExportedNetwork:
    """A program and the names of its dimensions; `convention` is known once it has been imported."""

    def __init__(self, program: Any, names: Mapping[str, str] | None = None, name: str = "network") -> None:
        self.name = name
        self._program = decomposed(program)
        self._names = names or {}
        self.convention: CallingConvention | None = None

    def import_into(self, ctx: RtContext, *, keeps_weights: bool) -> ModuleOp:
        """The network in the `trt` dialect."""
        found = import_program(self._program, ctx, self._names, keeps_weights=keeps_weights)
        self.convention = found.convention
        return found.module


def exported_network(
    model: Any, example_inputs: Sequence[Any] | None = None, dynamic_shapes: Any = None, keywords: Any = None
) -> ExportedNetwork:
    """A module, exported with example inputs, or a program as it is."""
    if not hasattr(model, "graph_signature"):
        if example_inputs is None and not keywords:
            raise InvalidInputError(
                "a module is compiled with example inputs: mlirt.compile(module, (x,)), or "
                "mlirt.compile(torch.export.export(module, (x,)))"
            )
        arguments = tuple(example_inputs) if isinstance(example_inputs, list | tuple) else (example_inputs,)
        arguments = () if example_inputs is None else arguments
        program = exported(model, arguments, keywords, dynamic_shapes)
        names = dimension_names(program, keywords or {}, arguments, dynamic_shapes)
        return ExportedNetwork(program, names, type(model).__name__)
    if example_inputs is not None or dynamic_shapes is not None:
        raise InvalidInputError("an exported program has its inputs and dynamic shapes already; give none")
    return ExportedNetwork(model)
