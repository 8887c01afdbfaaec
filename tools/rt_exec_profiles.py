"""The shapes of inputs that rt-exec's flags name."""

from __future__ import annotations

import argparse

from mlirt.errors import InvalidInputError
from mlirt.tools.flag_values import Shape


def profiles_of(arguments: argparse.Namespace) -> dict[str, tuple[Shape, Shape, Shape]]:
    """(min, opt, max) by input; inputs of --shapes alone have just that shape, as with trtexec."""
    smallest, usual, largest = arguments.minShapes, arguments.optShapes, arguments.maxShapes
    found: dict[str, tuple[Shape, Shape, Shape]] = {}
    for name in sorted({*smallest, *usual, *largest}):
        if name not in smallest or name not in largest:
            raise InvalidInputError(f"input {name!r} needs a shape in both --minShapes and --maxShapes")
        best = usual.get(name, arguments.shapes.get(name, largest[name]))
        found[name] = (smallest[name], best, largest[name])
    return found or {name: (shape, shape, shape) for name, shape in arguments.shapes.items()}
