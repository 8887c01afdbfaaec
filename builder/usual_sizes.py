"""Tells the compiler how long the dynamic dimensions of a network are, usually and at most, by the shape profiles."""

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
    """Note, on the entry function, the usual value and bounds of each symbol that is a dimension of a profiled input.

    Choices that concern speed alone are made for these sizes.
    """
    from mlirt.dialects.typical_sizes import name_bounds, name_typical_values

    function = entry_function(module)
    values: dict[str, int] = {}
    bounds: dict[str, tuple[int, int]] = {}
    for name, argument in zip(input_names(function), function.body.block.args, strict=True):
        if name in profiles:
            profile = profiles[name]
            shapes = (profile.smallest, profile.usual, profile.largest)
            for dim, low, size, high in zip(dims(argument.type), *shapes, strict=True):
                if (symbol := _symbol(dim)) is not None:
                    values.setdefault(symbol, size)
                    bounds.setdefault(symbol, (low, high))
    name_typical_values(function, values)
    name_bounds(function, bounds)


def _symbol(dim: Dim) -> str | None:
    """The name of a dimension that is just a symbol."""
    names = symbols(dim)
    return next((name for name in names if dim == sym(name)), None)
