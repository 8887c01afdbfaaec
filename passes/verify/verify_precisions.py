"""Checks that layers compute in what the user asks them to compute in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from mlirt.counted_warnings import warn
from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.layer_precisions import HALVES, OBEYED, LayerPrecisions, Precision
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import byte_width, element_of, is_float
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp

_CONVERSIONS = (ConstantOp, IdentityOp, QuantizeOp, DequantizeOp)
_PRODUCTS = (ConvolutionOp, DeconvolutionOp, FullyConnectedOp, MatrixMultiplyOp)


@dataclass(frozen=True)
class VerifyPrecisionsPass(ModulePass):
    """Warn of each layer that computes in another format than `trt.layer_precisions` or `trt.precision` asks for.

    On a module with `trt.obey_precisions` the first one is an error. Nothing is changed. A layer that passes joined
    with others is asked for the widest of their formats; `int8` is asked of products alone; conversions are free.

    Before: `%y = trt.activation relu %x {trt.precision = "fp32"} : (tensor<4xf16>) -> tensor<4xf16>`
    After: `warning: layer relu1 computes in f16, but fp32 was asked for`
    """

    name = "verify-precisions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        asked = LayerPrecisions(op)
        for layer in op.walk():
            wanted = asked.of(layer) if isinstance(layer, TensorOp) and not isinstance(layer, _CONVERSIONS) else None
            found = None if wanted is None else _other_format(layer, wanted)
            if wanted is None or found is None:
                continue
            if OBEYED in op.attributes:
                raise OperationError(layer, f"computes in {found}, but {wanted.text} was asked for and must be obeyed")
            warn(f"layer {name_of(layer)} computes in {found}, but {wanted.text} was asked for", stacklevel=2)


def _other_format(layer: Operation, wanted: Precision) -> Attribute | None:
    """An element type of a layer that is not what is asked for."""
    read = [element_of(value.type) for value in layer.operands]
    made = [element_of(value.type) for value in layer.results]
    if wanted is Precision.INT8:
        return read[0] if isinstance(layer, _PRODUCTS) and byte_width(read[0]) > 1 else None
    if wanted in HALVES:
        return _first(made, (Float32Type(),))
    return _first([*read, *made], (Float16Type(), BFloat16Type()))


def _first(elements: Sequence[Attribute], unwanted: Sequence[Attribute]) -> Attribute | None:
    return next((element for element in elements if is_float(element) and element in unwanted), None)
