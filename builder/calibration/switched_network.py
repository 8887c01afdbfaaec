"""A network with a switch for each layer that could compute in int8: one build, and any mix of precisions to run.

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
from mlirt.passes.quantization.operand_steps import OperandSteps, Steps
from mlirt.passes.quantization.scale_insertion import quantized_and_back, round_weights
from mlirt.passes.quantization.tensor_ranges import TensorRanges, ranges_in, take_ranges


def switched(module: ModuleOp, ctx: Context) -> tuple[ModuleOp, dict[str, str]]:
    """A copy of a cleaned network that carries ranges, and for each layer the boolean input that is its switch."""
    copy = module.clone()
    ranges = TensorRanges(copy, ranges_in(copy))
    layers = IntegerChoice(copy, ranges).operands()
    steps = OperandSteps(ranges, layers)
    take_ranges(copy)
    products = {layer: steps.of(layer.operands[0]) for layer in layers if weight_axis(layer) is not None}
    names = {layer: ranges.name(layer.operands[0]) for layer in products}
    rounded: dict[SSAValue, SSAValue] = {}
    switches: dict[str, str] = {}
    for layer, found in products.items():
        value = layer.operands[0]
        if value not in rounded:
            rounded[value] = quantized_and_back(value, names[layer], found, weights_of(ctx))
        name = name_of(layer)
        switches[name] = f"compute in int8: {name}"
        _switch(entry_function(copy), layer, rounded[value], found, switches[name], ctx)
    return copy, switches


def _switch(function: FuncOp, layer: TensorOp, rounded: SSAValue, steps: Steps, name: str, ctx: Context) -> None:
    """Let the readers of a layer read its version in int8 where the input `name` is true."""
    block, axis = layer.parent, weight_axis(layer)
    weights = array_of(layer.operands[1], ctx)
    assert block is not None
    assert axis is not None
    assert weights is not None
    readers = list(layer.results[0].uses)
    other = layer.clone()
    other.location = layer.location
    block.insert_op_after(other, layer)
    other.operands[0] = rounded
    round_weights(other, weights, axis, steps, weights_of(ctx))
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
