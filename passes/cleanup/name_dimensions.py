"""Gives a name to every dimension of the inputs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mlirt.dialects.interpreter import input_names
from mlirt.dialects.symbolic import sym
from mlirt.dialects.tensor_types import dims, is_unknown, with_dims


@dataclass(frozen=True)
class NameDimensionsPass(ModulePass):
    """Name the dimensions of a function's arguments that are only `?`, after the input and the axis.

    Two `?` may differ, so each gets a name of its own. Inputs with a dimension in common should say so in their types;
    propagate-shapes carries the names on.

    Before: `func.func @main(%x: tensor<?x3xf32>)`
    After: `func.func @main(%x: tensor<?x3xf32, #trt.dims<["x_0", "3"]>>)`
    """

    name = "name-dimensions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                _name_arguments(function)


def _name_arguments(function: FuncOp) -> None:
    for name, argument in zip(input_names(function), list(function.body.block.args), strict=True):
        lengths = dims(argument.type)
        if any(map(is_unknown, lengths)):
            named = [sym(f"{name}_{axis}") if is_unknown(length) else length for axis, length in enumerate(lengths)]
            Rewriter.replace_value_with_new_type(argument, with_dims(argument.type, named))
    types = [argument.type for argument in function.body.block.args]
    function.function_type = FunctionType.from_lists(types, list(function.function_type.outputs))
