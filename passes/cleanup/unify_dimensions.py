"""Dimensions of the inputs that must be equal are one: a name, a number, or an expression of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.symbol_renaming import rename_symbols, renamed
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.passes.cleanup.equal_lengths import equal_lengths
from mlirt.passes.cleanup.length_equations import solution, symbol_of


@dataclass(frozen=True)
class UnifyDimensionsPass(ModulePass):
    """Let dimensions of the inputs that a layer needs to be equal be one: the number that one of them is or follows
    from the others, else the symbol that comes first among the inputs, else an expression of other symbols.

    A run binds each symbol to the shape of one input and checks all other dimensions against it, so that inputs that do
    not fit together are refused, rather than read beyond their ends. Lengths that broadcast need not be equal, unless
    another layer needs `broadcast(n, m)` to be one of them.

    Before:

        func.func @main(%x: tensor<?xf32, #trt.dims<["n", "2"]>>, %y: tensor<?x4xf32, #trt.dims<["m", "4"]>>) {
          %z = trt.concatenation %x, %y {axis = 1 : i64} : ...

    After:

        func.func @main(%x: tensor<?xf32, #trt.dims<["n", "2"]>>, %y: tensor<?x4xf32, #trt.dims<["n", "4"]>>) {
          %z = trt.concatenation %x, %y {axis = 1 : i64} : ...
    """

    name = "unify-dimensions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                replaced = _replacements(function)
                if replaced:
                    _rename(function, replaced)


def _replacements(function: FuncOp) -> dict[str, Dim]:
    """The symbols to replace, each with what it must be equal to."""
    lengths = _input_lengths(function)
    order = {name: place for place, name in enumerate(dict.fromkeys(chain.from_iterable(map(_names, lengths))))}
    bound = frozenset(symbol_of(length) for length in lengths) - {""}
    found: dict[str, Dim] = {}
    for op in function.walk():
        for first, *others in filter(None, equal_lengths(op)):
            for other in others:
                answer = solution(substitute(first, found), substitute(other, found), order, bound - set(found))
                if answer is not None:
                    new = dict([answer])
                    found = {name: substitute(dim, new) for name, dim in found.items()} | new
    return found


def _input_lengths(function: FuncOp) -> list[Dim]:
    return [dim for value in function.body.block.args for dim in dims(value.type) if not is_unknown(dim)]


def _names(dim: Dim) -> list[str]:
    return sorted(symbols(dim))


def _rename(function: FuncOp, replaced: Mapping[str, Dim]) -> None:
    """Replace symbols in all types and properties of a function."""
    rename_symbols(function, replaced)
    inputs, outputs = function.function_type.inputs, function.function_type.outputs
    function.function_type = FunctionType.from_lists(
        [renamed(of, replaced) for of in inputs], [renamed(of, replaced) for of in outputs]
    )
