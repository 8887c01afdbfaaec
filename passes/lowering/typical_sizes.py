"""Guesses of sizes that are known only at run time, for choices that concern speed alone."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block

from mlirt.dialects.symbolic import Dim, evaluate, symbols
from mlirt.dialects.tensor_types import dims

_BATCH = 1
_LENGTH = 256  # along other dimensions of inputs


def typical_values(block: Block) -> dict[str, int]:
    """A value for each symbol in the inputs of a function: one for batches, a few hundred for lengths."""
    values: dict[str, int] = {}
    for argument in block.args:
        for axis, dim in enumerate(dims(argument.type)):
            for name in sorted(symbols(dim)):
                values.setdefault(name, _LENGTH if axis else _BATCH)
    return values


def typical(dim: Dim, values: Mapping[str, int]) -> int:
    """A size with these values for its symbols; at least 1."""
    if isinstance(dim, int):
        return dim
    known = {name: values.get(name, _LENGTH) for name in symbols(dim)}
    return max(1, evaluate(dim, known))
