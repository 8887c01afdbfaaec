"""Networks that say themselves where they compute with integers: no scales are added to them
(tensorrt-features.md#10.1).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument, Operation

from mlirt.counted_warnings import warn
from mlirt.dialects.tensor_types import byte_width, element_of, is_bool, is_float, is_tensor
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp

_PRODUCTS = (ConvolutionOp, DeconvolutionOp, FullyConnectedOp, MatrixMultiplyOp)


def is_explicit(module: ModuleOp) -> bool:
    """Whether a layer quantises inside of the network, so that ranges of tensors count for nothing.

    The conversion of an 8-bit input or output does not say where the layers between compute with bytes.
    """
    for op in module.walk():
        if isinstance(op, QuantizeOp) and not all(isinstance(use.operation, ReturnOp) for use in op.output.uses):
            return True
        if isinstance(op, DequantizeOp) and not isinstance(op.input, BlockArgument):
            return True
    return False


def has_conversions(module: ModuleOp) -> bool:
    """Whether any layer quantises or dequantises, be it the first or the last of the network
    (tensorrt-features.md#9.3).
    """
    return any(isinstance(op, QuantizeOp | DequantizeOp) for op in module.walk())


def needs_ranges(module: ModuleOp) -> bool:
    """Whether a network without any range of a tensor would compute nothing with bytes (tensorrt-features.md#9.4).

    It would with layers that quantise or dequantise, and where it has bytes and no product of floating-point numbers.
    """
    if has_conversions(module):
        return False
    ops = list(module.walk())
    return any(map(_multiplies_floats, ops)) or not any(map(_has_int8, ops))


def _multiplies_floats(op: Operation) -> bool:
    return isinstance(op, _PRODUCTS) and is_float(element_of(op.operands[0].type))


def _has_int8(op: Operation) -> bool:
    elements = [element_of(value.type) for value in (*op.operands, *op.results) if is_tensor(value.type)]
    return any(byte_width(element) == 1 and not is_bool(element) for element in elements)


def warn_of_ranges() -> None:
    """Say that ranges were given for nothing."""
    warn(
        "Calibrator won't be used in explicit precision mode: the network has quantize and dequantize layers, "
        "which alone say where it computes with integers; leave the calibration out, or the layers",
        stacklevel=2,
    )
