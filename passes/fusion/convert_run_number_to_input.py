"""Lets the runtime tell a network how many runs it has made."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.interpreter import input_names
from mlirt.dialects.trt.run_number import RunNumberOp

_NAME = "run number"


@dataclass(frozen=True)
class ConvertRunNumberToInputPass(ModulePass):
    """Make the number of the run the last argument of a function that reads it; `trt.counts_runs` marks it.

    Before:

        func.func @main(%x: tensor<2xf32>) -> tensor<i64> {
          %r = trt.run_number : tensor<i64>

    After:

        func.func @main(%x: tensor<2xf32>, %r: tensor<i64> {trt.name = "run number", trt.counts_runs}) -> tensor<i64> {
    """

    name = "convert-run-number-to-input"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.body.block.ops if isinstance(inner, FuncOp)]:
            readers = [inner for inner in function.walk() if isinstance(inner, RunNumberOp)]
            if readers:
                _give_number(function, readers)


def _give_number(function: FuncOp, readers: list[RunNumberOp]) -> None:
    names, block = input_names(function), function.body.block
    given = function.arg_attrs or ArrayAttr(DictionaryAttr({"trt.name": StringAttr(name)}) for name in names)
    number = block.insert_arg(readers[0].output.type, len(block.args))
    number.name_hint = "run"
    for reader in readers:
        reader.output.replace_all_uses_with(number)
        reader.detach()
        reader.erase()
    name = _NAME
    while name in names:
        name += "_"
    mark = DictionaryAttr({"trt.name": StringAttr(name), "trt.counts_runs": UnitAttr()})
    function.arg_attrs = ArrayAttr([*given, mark])
    results = list(function.function_type.outputs)
    function.function_type = FunctionType.from_lists([argument.type for argument in block.args], results)
