"""Inputs and outputs in the formats that the network asks for, with copies between them and the layers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.io_formats import IoFormat, image_dims, input_formats, output_formats, stored_type, with_format
from mlirt.dialects.locations import name_of, named
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.tensor_formats import LINEAR, layout_of


@dataclass(frozen=True)
class ConvertIoFormatsPass(ModulePass):
    """Give arguments and results of the entry function the types of their `trt.format`, and copy them at the borders.

    A copy bears the name of the layer that reads the input, or makes the output. Where layers work on just that layout,
    `assign-layouts` takes it away again. Formats of blocks are those of images: other shapes are seen as such.

    Before:

        func.func @main(%x: tensor<1x3x8x8xf16> {trt.format = "HWC8"}) -> tensor<1x3x8x8xf16> {
          %y = fused.pointwise %x {..}

    After:

        func.func @main(%x: tensor<1x3x8x8xf16, #trt.dims<[..], order = [0, 2, 3, 1], row = 8>> {..}) -> .. {
          %0 = fused.reformat %x : (tensor<1x3x8x8xf16, #trt.dims<..>>) -> tensor<1x3x8x8xf16>
          %y = fused.pointwise %0 {..}
    """

    name = "convert-io-formats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                _convert(function)


def _convert(function: FuncOp) -> None:
    block, last = function.body.block, function.body.block.last_op
    inputs, outputs = input_formats(function), output_formats(function)
    if not isinstance(last, ReturnOp) or all(one.name == LINEAR for one in (*inputs, *outputs)):
        return
    for position, format in enumerate(outputs):
        if _is_to_do(format):
            outputs[position] = replace(format, logical=dims(last.operands[position].type))
            last.operands[position] = _stored(last.operands[position], format.name, last)
    for position, format in enumerate(inputs):
        if _is_to_do(format):
            inputs[position] = replace(format, logical=dims(block.args[position].type))
            _read(block.args[position], format.name)
    for key, given, formats in (("arg_attrs", function.arg_attrs, inputs), ("res_attrs", function.res_attrs, outputs)):
        if given is not None:
            entries = [with_format(entry, format) for entry, format in zip(given, formats, strict=True)]
            function.properties[key] = ArrayAttr(entries)
    function.function_type = FunctionType.from_lists(
        [value.type for value in block.args], [value.type for value in last.operands]
    )


def _is_to_do(format: IoFormat) -> bool:
    return format.name != LINEAR and format.logical is None


def _read(argument: BlockArgument, format: str) -> None:
    """Let the readers of an input have a linear copy of it."""
    logical, uses, block = argument.type, list(argument.uses), argument.block
    value = Rewriter.replace_value_with_new_type(argument, stored_type(logical, format))
    before = block.first_op
    if not uses or before is None:
        return
    first = min(uses, key=lambda use: (_place(use.operation), use.index))
    plain = tensor(element_of(logical), image_dims(logical, format)) if _is_blocked(format) else logical
    made: list[Operation] = [ReformatOp(value, plain)]
    if plain != logical:
        made.append(ViewOp(made[0].results[0], logical))
    for op in made:
        op.location = named(f"Reformatting CopyNode for Input Tensor {first.index} to {_name(first.operation)}")
        block.insert_op_before(op, before)
    for use in uses:
        use.operation.operands[use.index] = made[-1].results[0]


def _place(op: Operation) -> int:
    """How many ops of the function stand in front of an op, or of the branch or loop that it is in."""
    while (parent := op.parent_op()) is not None and not isinstance(parent, FuncOp):
        op = parent
    block = op.parent
    return -1 if block is None else block.get_operation_index(op)


def _name(op: Operation) -> str:
    return "output" if isinstance(op, ReturnOp) else name_of(op)


def _stored(value: SSAValue, format: str, before: Operation) -> SSAValue:
    """A copy of a value in a format, in front of an op."""
    stored, made = stored_type(value.type, format), list[Operation]()
    if _is_blocked(format) and image_dims(value.type, format) != dims(value.type):
        made.append(ViewOp(value, tensor(element_of(value.type), image_dims(value.type, format))))
    made.append(ReformatOp(made[-1].results[0] if made else value, stored))
    maker = name_of(value.owner) if isinstance(value.owner, Operation) else "input"
    block = before.parent
    assert block is not None
    for op in made:
        op.location = named(f"Reformatting CopyNode for Output Tensor {_index(value)} to {maker}")
        block.insert_op_before(op, before)
    return made[-1].results[0]


def _index(value: SSAValue) -> int:
    return value.index if isinstance(value, OpResult) else 0


def _is_blocked(format: str) -> bool:
    layout = layout_of(format)
    return layout is not None and not layout.channels_last
