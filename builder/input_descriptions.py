"""The inputs of a network as an engine of it describes them."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.interpreter import entry_function, input_names
from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.runtime.engine_interface import TensorDescription


def input_descriptions(module: ModuleOp) -> list[TensorDescription]:
    """The inputs of a network as an engine describes them."""
    function = entry_function(module)
    return [
        TensorDescription(
            name,
            element_name(element_of(argument.type)),
            tuple(dim if isinstance(dim, int) else str(dim) for dim in dims(argument.type)),
        )
        for name, argument in zip(input_names(function), function.body.block.args, strict=True)
    ]
