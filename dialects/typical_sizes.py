"""What is known of sizes that a run decides about: guesses, for choices that concern speed alone, and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from mlirt.dialects.symbolic import Dim, evaluate, symbols
from mlirt.dialects.tensor_types import dims

_BATCH = 1
_LENGTH = 256  # along other dimensions of inputs


# The attribute of a function that says how long its symbols usually are: `{n = 8 : i64}`.
TYPICAL = "trt.typical_sizes"
# And the one that says between which lengths they lie: `{n = array<i64: 1, 32>}`.
BOUNDS = "trt.size_bounds"

Bounds: TypeAlias = "Mapping[str, tuple[int, int]]"


def typical_values(block: Block) -> dict[str, int]:
    """A value for each symbol in the inputs of a function: the one that the function names, else one for batches, a
    few hundred for lengths.
    """
    values = _named(block)
    for argument in block.args:
        for axis, dim in enumerate(dims(argument.type)):
            for name in sorted(symbols(dim)):
                values.setdefault(name, _LENGTH if axis else _BATCH)
    return values


def _named(block: Block) -> dict[str, int]:
    function = block.parent_op()
    named = function.attributes.get(TYPICAL) if function is not None else None
    given = named.data.items() if isinstance(named, DictionaryAttr) else ()
    return {name: size.value.data for name, size in given if isinstance(size, IntegerAttr)}


def name_typical_values(function: FuncOp, values: Mapping[str, int]) -> None:
    """Let a function say how long these symbols usually are."""
    if values:
        sizes = {name: IntegerAttr(size, i64) for name, size in sorted(values.items())}
        function.attributes[TYPICAL] = DictionaryAttr({**sizes})


def name_bounds(function: FuncOp, bounds: Bounds) -> None:
    """Let a function say between which lengths these symbols lie."""
    if bounds:
        pairs = {name: DenseArrayBase.from_list(i64, pair) for name, pair in sorted(bounds.items())}
        function.attributes[BOUNDS] = DictionaryAttr({**pairs})


def named_bounds(block: Block) -> dict[str, tuple[int, int]]:
    """The smallest and the largest value of each symbol of which the function around a block says so.

    A run refuses other lengths, as they are in no profile.
    """
    function = block.parent_op()
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    named = function.attributes.get(BOUNDS) if function is not None else None
    given = named.data.items() if isinstance(named, DictionaryAttr) else ()
    pairs = {name: [int(one) for one in pair.iter_values()] for name, pair in given if isinstance(pair, DenseArrayBase)}
    return {name: (pair[0], pair[1]) for name, pair in pairs.items()}


def typical(dim: Dim, values: Mapping[str, int]) -> int:
    """A size with these values for its symbols; at least 1."""
    if isinstance(dim, int):
        return dim
    known = {name: values.get(name, _LENGTH) for name in symbols(dim)}
    return max(1, evaluate(dim, known))
