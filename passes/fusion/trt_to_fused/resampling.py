"""Resampling of images."""

from __future__ import annotations

from mlirt.dialects.fused.resize import ResizeOp as FusedResizeOp
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions

# The new lengths are in the result type.
_LENGTHS = ("shape", "output_dims")


def convert_resize(at: Conversion) -> None:
    """`trt.resize` becomes `fused.resize` with the same properties, or nothing where no axis changes."""
    op = at.op
    assert isinstance(op, ResizeOp)
    properties = {name: value for name, value in op.properties.items() if name not in _LENGTHS}
    made = FusedResizeOp.build(operands=[op.input], properties=properties, result_types=[op.output.type])
    is_copy = all(made.is_copied(axis) for axis in range(len(dims(op.output.type))))
    if is_copy:
        made.erase()  # else it would count as one of the input's readers
    at.replace(op.input if is_copy else at.emit(made))


CONVERSIONS: Conversions = {ResizeOp: convert_resize}
