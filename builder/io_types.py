"""Other element types for the inputs and outputs of a network, which itself computes in what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.locations import named
from mlirt.dialects.tensor_names import tensor_names
from mlirt.dialects.tensor_types import dims, element_name, element_of, element_type, is_bool, is_float, tensor
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.frontend.network.scaled_int8 import int8_of_numbers, numbers_of_int8
from mlirt.passes.quantization.tensor_ranges import add_range, ranges_in


def change_types(module: ModuleOp, ctx: RtContext, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Give inputs and outputs, by name, these element types, with conversions at the borders.

    Bytes stand for numbers by the tensor's range: raises `InvalidModelError` where it has none
    (tensorrt-features.md#31.7), and
    `InvalidInputError` for numbers that are to be whole ones, or the other way round.
    """
    function, ranges = entry_function(module), ranges_in(module)
    block, last = function.body.block, function.body.block.last_op
    assert isinstance(last, ReturnOp)
    for position, name in enumerate(output_names(function)):
        value = last.operands[position]
        wanted = _wanted(name, outputs, element_of(value.type))
        if wanted is not None:
            append = _before(last, name)
            reach = _reach(name, wanted, ranges)
            last.operands[position] = (
                _cast(value, wanted, append) if reach is None else int8_of_numbers(value, reach, ctx.weights, append)
            )
    for position, name in enumerate(input_names(function)):
        argument = block.args[position]
        own = element_of(argument.type)
        wanted = _wanted(name, inputs, own)
        first = block.first_op
        if wanted is None or first is None:
            continue
        uses, hint, reach = list(argument.uses), argument.name_hint, _reach(name, wanted, ranges)
        value = Rewriter.replace_value_with_new_type(argument, tensor(wanted, dims(argument.type)))
        value.name_hint = hint
        append = _before(first, name)
        number = value if reach is None else numbers_of_int8(value, reach, ctx.weights, append)
        number = number if element_of(number.type) == own else _cast(number, own, append)
        for use in uses:
            use.operation.operands[use.index] = number
        if name in ranges:
            add_range(module, tensor_names(module)[number], ranges[name])
    function.function_type = FunctionType.from_lists(
        [value.type for value in block.args], [value.type for value in last.operands]
    )


def _wanted(name: str, types: Mapping[str, str], own: Attribute) -> Attribute | None:
    """The element type that a tensor is to get; None where it has it."""
    if name not in types or element_name(own) == types[name]:
        return None
    wanted = element_type(types[name])
    is_number = is_float(wanted) or types[name] == "int8"
    if is_bool(own) or is_float(own) != is_number:
        raise InvalidInputError(
            f"{name!r} has elements of type {element_name(own)}, which {types[name]} cannot stand for"
        )
    return wanted


def _reach(name: str, wanted: Attribute, ranges: Mapping[str, float]) -> float | None:
    """The range of a tensor of bytes; None for one of numbers."""
    if is_float(wanted) or element_name(wanted) != "int8":
        return None
    if not ranges.get(name):
        raise InvalidModelError(
            f"Could not find scales for tensor {name}: bytes need a calibration, or a dynamic range"
        )
    return ranges[name]


def _before(op: Operation, name: str) -> Callable[[Operation], None]:
    """A function that puts ops in front of one, with the name of a tensor as their layer's."""
    block = op.parent
    assert block is not None

    def append(new: Operation) -> None:
        new.location = named(name)
        block.insert_op_before(new, op)

    return append


def _cast(value: SSAValue, wanted: Attribute, append: Callable[[Operation], None]) -> SSAValue:
    made = IdentityOp.cast(value, wanted)
    append(made)
    return made.output
