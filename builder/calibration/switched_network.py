"""A network with a switch for each layer that could compute on bytes: one build, and any mix of precisions to run.

%y = trt.convolution %x, %w          becomes     %y = trt.convolution %x, %w
                                                 %b = trt.convolution %x in 8 bits, %w in 8 bits
                                                 %s = trt.select %switch, %b, %y
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import rank, tensor
from mlirt.dialects.trt.select import SelectOp
from mlirt.passes.quantization.integer_choice import IntegerChoice
from mlirt.passes.quantization.integer_operands import weight_axis
from mlirt.passes.quantization.scale_insertion import dequantized_weights, quantized_and_back
from mlirt.passes.quantization.tensor_ranges import LARGEST, RANGES, TensorRanges, ranges_in


def switched(module: ModuleOp, ctx: Context) -> tuple[ModuleOp, dict[str, str]]:
    """A copy of a cleaned network that carries ranges, and for each layer the boolean input that is its switch."""
    copy = module.clone()
    ranges = TensorRanges(copy, ranges_in(copy))
    chosen = IntegerChoice(copy, ranges).operands()
    copy.attributes.pop(RANGES, None)
    rounded: dict[SSAValue, SSAValue] = {}
    switches: dict[str, str] = {}
    for layer in chosen:
        axis = weight_axis(layer)
        if axis is None:
            continue
        value = layer.operands[0]
        if value not in rounded:
            scale = (ranges.of(value) or 0.0) / LARGEST or 1.0
            rounded[value] = quantized_and_back(value, ranges.name(value), scale, weights_of(ctx))
        name = name_of(layer)
        switches[name] = f"compute on bytes: {name}"
        _switch(entry_function(copy), layer, rounded[value], axis, switches[name], ctx)
    return copy, switches


def _switch(function: FuncOp, layer: TensorOp, rounded: SSAValue, axis: int, name: str, ctx: Context) -> None:
    """Let the readers of a layer read its version on bytes where the input `name` is true."""
    block = layer.parent
    weights = array_of(layer.operands[1], ctx)
    assert block is not None
    assert weights is not None
    readers = list(layer.results[0].uses)
    other = layer.clone()
    other.location = layer.location
    block.insert_op_after(other, layer)
    other.operands[0] = rounded
    other.operands[1] = dequantized_weights(other, weights, axis, weights_of(ctx), f"{name_of(layer)}.kernel")
    flag = _input(function, rank(layer.results[0].type), name)
    select = SelectOp.build_inferred([flag, other.results[0], layer.results[0]], {}, layer.location)
    select.results[0].name_hint = layer.results[0].name_hint
    block.insert_op_after(select, other)
    for use in readers:
        use.operation.operands[use.index] = select.results[0]


def _input(function: FuncOp, axes: int, name: str) -> SSAValue:
    """A further input of the network, one boolean with as many axes as are wanted."""
    block = function.body.block
    names = list(function.arg_attrs or [])
    argument = block.insert_arg(tensor(i1, [1] * axes), len(block.args))
    function.arg_attrs = ArrayAttr([*names, DictionaryAttr({"trt.name": StringAttr(name)})])
    inputs = [one.type for one in block.args]
    function.properties["function_type"] = FunctionType.from_lists(inputs, list(function.function_type.outputs))
    return argument
