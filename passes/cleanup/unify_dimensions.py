"""Dimensions of the inputs that must be equal are one: a name, a number, or an expression of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from mlirt.dialects.length_requirements import (
    LengthRequirement,
    Relation,
    input_lengths_by_layer,
    set_input_lengths_by_layer,
)
from mlirt.dialects.locations import name_of
from mlirt.dialects.symbol_renaming import rename_symbols, renamed
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.passes.cleanup.length_equations import solution, symbol_of
from mlirt.passes.cleanup.repeated_requirements import RepeatedRequirements


@dataclass(frozen=True)
class UnifyDimensionsPass(ModulePass):
    """Let dimensions of the inputs that a layer needs to be equal be one: the number that one of them is or follows
    from the others, else the symbol that comes first among the inputs, else an expression of other symbols.

    A run binds each symbol to the shape of one input and checks all other dimensions against it, so that inputs that do
    not fit together are refused, rather than read beyond their ends. Two lengths of which neither may be less than the
    other are equal, as by an assertion, whose words a caller of other inputs gets. Lengths that broadcast need not be
    equal, unless another layer needs `broadcast(n, m)` to be one of them.

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
                    _note_layers(function, {name: one.reason for name, one in replaced.items()})
                    _rename(function, {name: one.length for name, one in replaced.items()})


@dataclass(frozen=True)
class _Replacement:
    """What a symbol must be equal to, and why: a layer that needs it, or the words that a layer has for that."""

    length: Dim
    reason: str


def _replacements(function: FuncOp) -> dict[str, _Replacement]:
    lengths = _input_lengths(function)
    order = {name: place for place, name in enumerate(dict.fromkeys(chain.from_iterable(map(_names, lengths))))}
    bound = frozenset(symbol_of(length) for length in lengths) - {""}
    found: dict[str, Dim] = {}
    reasons: dict[str, str] = {}
    for op, one, opposite in _equations(function.body.block):
        left, right = substitute(one.left, found), substitute(one.right, found)
        answer = solution(left, right, order, bound - set(found))
        if answer is not None:
            new = dict([answer])
            found = {name: substitute(dim, new) for name, dim in found.items()} | new
            reasons |= {name: _words(name, one, opposite) or one.layer or name_of(op) for name in new}
    return {name: _Replacement(dim, reasons[name]) for name, dim in found.items()}


def _words(name: str, *bounds: LengthRequirement | None) -> str:
    """What a layer says where the symbol, which is `{right}` in it, is another length than `{left}`."""
    faults = [one.fault for one in bounds if one is not None and one.relation is Relation.AT_LEAST]
    rights = [str(one.right) for one in bounds if one is not None and one.relation is Relation.AT_LEAST]
    return next((fault for fault, right in zip(faults, rights, strict=True) if right == name), "")


def _equations(block: Block) -> Iterator[tuple[Operation, LengthRequirement, LengthRequirement | None]]:
    """What must be equal in each run, in the order of a run; of two lengths of which each is at least the other one
    both requirements.
    """
    bounds: dict[tuple[Dim, Dim], LengthRequirement] = {}
    for op, one in _requirements(block, RepeatedRequirements(_is_equation)):
        if one.relation is Relation.EQUAL:
            yield op, one, None
        elif (opposite := bounds.get((one.right, one.left))) is not None:
            yield op, one, opposite
        else:
            bounds[one.left, one.right] = one


def _requirements(block: Block, requirements: RepeatedRequirements) -> Iterator[tuple[Operation, LengthRequirement]]:
    """Those of all layers that each run has: layers in branches need not run."""
    for op in block.ops:
        yield from ((op, one) for one in requirements.of(op))
        if op.regions and not isinstance(op, scf.IfOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _requirements(inner, requirements)


def _is_equation(one: LengthRequirement) -> bool:
    is_one = one.relation in (Relation.EQUAL, Relation.AT_LEAST)
    return is_one and one.where == 1 and not any(map(is_unknown, one.lengths))


def _input_lengths(function: FuncOp) -> list[Dim]:
    return [dim for value in function.body.block.args for dim in dims(value.type) if not is_unknown(dim)]


def _names(dim: Dim) -> list[str]:
    return sorted(symbols(dim))


def _note_layers(function: FuncOp, reasons: Mapping[str, str]) -> None:
    """Keep whose needs the dimensions of the inputs follow from, for the message to callers who give others."""
    noted = input_lengths_by_layer(function)
    for index, value in enumerate(function.body.block.args):
        for axis, dim in enumerate(dims(value.type)):
            for name in _names(dim):
                if name in reasons and (str(dim) == name or "{right}" not in reasons[name]):
                    noted.setdefault((index, axis), reasons[name])
    set_input_lengths_by_layer(function, noted)


def _rename(function: FuncOp, replaced: Mapping[str, Dim]) -> None:
    """Replace symbols in all types and properties of a function."""
    rename_symbols(function, replaced)
    inputs, outputs = function.function_type.inputs, function.function_type.outputs
    function.function_type = FunctionType.from_lists(
        [renamed(of, replaced) for of in inputs], [renamed(of, replaced) for of in outputs]
    )
