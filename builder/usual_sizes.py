"""Tells the compiler how long the dynamic dimensions of a network usually are, by the shape profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlirt.dialects.interpreter import entry_function, input_names
from mlirt.dialects.symbolic import Dim, sym, symbols
from mlirt.dialects.tensor_types import dims

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.profiles import Profile


def name_usual_sizes(module: ModuleOp, profiles: Mapping[str, Profile]) -> None:
    """Note, on the entry function, the value of each symbol that is a dimension of a profiled input.

    Choices that concern speed alone are made for these sizes.
    """
    from mlirt.dialects.typical_sizes import name_typical_values

    function = entry_function(module)
    values: dict[str, int] = {}
    for name, argument in zip(input_names(function), function.body.block.args, strict=True):
        if name in profiles:
            for dim, size in zip(dims(argument.type), profiles[name].usual, strict=True):
                if (symbol := _symbol(dim)) is not None:
                    values.setdefault(symbol, size)
    name_typical_values(function, values)


def _symbol(dim: Dim) -> str | None:
    """The name of a dimension that is just a symbol."""
    names = symbols(dim)
    return next((name for name in names if dim == sym(name)), None)
