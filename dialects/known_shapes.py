"""Layers with shape operands, rebuilt with properties where those operands follow from the network's dimensions."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.shape_arithmetic import ShapeArithmetic, numbers
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.trt.fill import FillOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp


def with_known_shapes(layer: TensorOp, arithmetic: ShapeArithmetic) -> TensorOp | None:
    """The layer with properties in the place of shape operands; None where it has none that are known."""

    def known(operand: SSAValue | None) -> DimsAttr | None:
        elements = None if operand is None else arithmetic.elements(operand)
        return None if elements is None else DimsAttr.of(elements)

    if isinstance(layer, ShuffleOp) and (shape := known(layer.shape)) is not None:
        return _rebuild(layer, [layer.input, None], {"reshape_dims": shape})
    if isinstance(layer, ResizeOp) and (shape := known(layer.shape)) is not None:
        return _rebuild(layer, [layer.input, None], {"output_dims": shape})
    if isinstance(layer, FillOp) and (shape := known(layer.shape)) is not None:
        return _rebuild(layer, [None, layer.alpha, layer.beta], {"output_dims": shape})
    if isinstance(layer, SliceOp):
        return _refine_slice(layer, arithmetic)
    return None


def _refine_slice(layer: SliceOp, arithmetic: ShapeArithmetic) -> TensorOp | None:
    operands: list[SSAValue | None] = [layer.input]
    properties: dict[str, Attribute] = {}
    for name, operand in (
        ("start", layer.dynamic_start),
        ("size", layer.dynamic_size),
        ("stride", layer.dynamic_stride),
    ):
        elements = None if operand is None else arithmetic.elements(operand)
        steps = None if elements is None else numbers(elements)
        if elements is None or (name == "stride" and steps is None):
            operands.append(operand)
            continue
        operands.append(None)
        properties[name] = integer_list(steps or []) if name == "stride" else DimsAttr.of(elements)
    return _rebuild(layer, [*operands, layer.fill], properties) if properties else None


def _rebuild(layer: TensorOp, operands: list[SSAValue | None], properties: dict[str, Attribute]) -> TensorOp | None:
    kept = {name: value for name, value in layer.properties.items() if name != "operandSegmentSizes"}
    try:
        return type(layer).build_inferred(operands, {**kept, **properties}, layer.location)
    except VerifyException:  # the run reports a shape that does not fit
        return None
