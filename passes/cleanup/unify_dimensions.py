"""Dimensions of the inputs that must be equal are one: a name, a number, or an expression of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirt.dialects.broadcasting import is_repeated
from mlirt.dialects.symbol_renaming import rename_symbols, renamed
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.rnn import RnnOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.passes.cleanup.length_equations import solution, symbol_of


@dataclass(frozen=True)
class UnifyDimensionsPass(ModulePass):
    """Let dimensions of the inputs that a layer needs to be equal be one: the number that one of them is or follows
    from the others, else the symbol that comes first among the inputs, else an expression of other symbols.

    A run binds each symbol to the shape of one input and checks all other dimensions against it, so that inputs that do
    not fit together are refused, rather than read beyond their ends. A symbol never stands for a length that is
    repeated: only a constant 1 is.

    Before:

        func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>) {
          %z = trt.elementwise sum %x, %y : ...

    After:

        func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["n"]>>) {
          %z = trt.elementwise sum %x, %y : ...
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
        for equal in _equal_lengths(op):
            first, *others = [dim for dim in equal if not is_repeated(dim) and not is_unknown(dim)] or [1]
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


def _equal_lengths(op: Operation) -> Iterator[Sequence[Dim]]:
    """Lengths of an op's operands that must be equal where they are not 1."""
    if not isinstance(op, TensorOp):
        return
    shapes = [dims(operand.type) for operand in op.operands]
    if isinstance(op, ElementwiseOp | SelectOp | ParametricReluOp):
        yield from zip(*shapes, strict=True)
    elif isinstance(op, ConcatenationOp):
        joined = op.axis.value.data
        yield from (lengths for axis, lengths in enumerate(zip(*shapes, strict=True)) if axis != joined)
    elif isinstance(op, RnnOp):
        states = [dims(state.type)[0] for state in (op.initial_hidden, op.initial_cell) if state is not None]
        yield [shapes[0][1], *states]
    elif isinstance(op, MatrixMultiplyOp):
        left, right = op.lhs_op.data, op.rhs_op.data
        columns = -2 if left is MatrixOperation.TRANSPOSE else -1
        rows = -2 if right is MatrixOperation.NONE else -1
        yield shapes[0][columns], shapes[1][rows]
        batches = (shapes[0][: _first_of_matrix(left)], shapes[1][: _first_of_matrix(right)])
        yield from zip(*batches, strict=True)


def _first_of_matrix(operation: MatrixOperation) -> int:
    return -1 if operation is MatrixOperation.VECTOR else -2


def _rename(function: FuncOp, replaced: Mapping[str, Dim]) -> None:
    """Replace symbols in all types and properties of a function."""
    rename_symbols(function, replaced)
    inputs, outputs = function.function_type.inputs, function.function_type.outputs
    function.function_type = FunctionType.from_lists(
        [renamed(of, replaced) for of in inputs], [renamed(of, replaced) for of in outputs]
    )
