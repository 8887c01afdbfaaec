"""What became of each pair of conversions, and of the layer between them, as a sentence for people."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.int8_products import multiplies_float8, multiplies_int8
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.quantization.commuting_layers import movement_of
from mlirt.passes.quantization.int8_convolution import integer_convolution
from mlirt.passes.quantization.int8_deconvolution import integer_deconvolution
from mlirt.passes.quantization.int8_product import integer_product
from mlirt.passes.quantization.scalings import Refusal

Product = ConvolutionOp | DeconvolutionOp | FullyConnectedOp | MatrixMultiplyOp


def outcomes(block: Block, ctx: Context) -> Iterator[tuple[str, str]]:
    """(layer, what became of it) for layers around which the network quantises, in the order of the block."""
    for op in block.ops:
        if isinstance(op, Product):
            yield from _of_product(op, ctx)
        elif isinstance(op, DequantizeOp) and array_of(op.input, ctx) is None:
            yield from _of_dequantization(op)
        elif isinstance(op, QuantizeOp) and array_of(op.input, ctx) is None:
            yield name_of(op), _of_quantization(op)


def _of_product(op: Product, ctx: Context) -> Iterator[tuple[str, str]]:
    left, right = op.operands[0], op.operands[1]
    if multiplies_int8(left.type, right.type):
        yield name_of(op), f"multiplies bytes ({_element(left)} with {_element(right)})"
    elif multiplies_float8(left.type, right.type):
        yield name_of(op), "multiplies 8-bit floats"
    elif any(isinstance(value.owner, DequantizeOp) for value in (left, right)):
        yield name_of(op), f"stays {_element(left)}: {_why_not(op, ctx)}"


def _of_dequantization(op: DequantizeOp) -> Iterator[tuple[str, str]]:
    readers = list(dict.fromkeys(use.operation for use in op.output.uses))
    floats = [f"{_described(one)}{_why_moved(one)}" for one in readers if not isinstance(one, Product | QuantizeOp)]
    if floats:
        yield name_of(op), f"is read in {_element(op.output)} by {' and '.join(floats)}"
    for reader in readers:
        if isinstance(reader, QuantizeOp):
            yield name_of(op), f"meets {name_of(reader)}, which has another scale or zero point"


def _why_not(op: Product, ctx: Context) -> str:
    if isinstance(op, DeconvolutionOp):
        found = integer_deconvolution(op, ctx)
    else:
        found = integer_convolution(op, ctx) if isinstance(op, ConvolutionOp) else integer_product(op, ctx)
    return found.reason if isinstance(found, Refusal) else "no pass has tried"


def _of_quantization(op: QuantizeOp) -> str:
    source = op.input.owner
    if not isinstance(source, Operation):
        return "rounds what comes from outside"
    product = _product_of(op.input)
    if product is not None:
        return f"is how {name_of(product)} ends"
    if isinstance(source, DequantizeOp):
        return "changes a scale or zero point"
    return f"rounds what {_described(source)} computes in {_element(op.input)}"


def _product_of(value: SSAValue) -> Product | None:
    """The int8 product that a value is computed from alone, constants aside."""
    while isinstance(value.owner, Operation):
        if isinstance(value.owner, Product):
            return value.owner if multiplies_int8(value.owner.operands[0].type, value.owner.operands[1].type) else None
        varying = [operand for operand in value.owner.operands if not isinstance(operand.owner, ConstantOp)]
        if len(varying) != 1 or isinstance(value.owner, QuantizeOp | DequantizeOp):
            return None
        (value,) = varying
    return None


def _why_moved(reader: Operation) -> str:
    moves = movement_of(reader) is not None
    return ", as not all that it joins or compares has this scale" if moves and len(reader.operands) > 1 else ""


def _described(op: Operation) -> str:
    name = name_of(op)
    if isinstance(op, ReturnOp):
        return "who gets the output"
    return name if name == op.name else f"{name} ({op.name})"


def _element(value: SSAValue) -> str:
    return str(element_of(value.type))
