"""Copies and conversions between element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.float8 import rounded
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor, element_of, is_float8, numpy_dtype, with_element
from mlirt.dialects.trt.operand_checks import element_or
from mlirt.dialects.wide_arithmetic import truncated

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

ROUNDS = "trt.rounds"
"""The attribute of a conversion to half precision that the network has for its rounding: it is never left out."""


@irdl_op_definition
class IdentityOp(TensorOp):
    """The same values in the element type of the result (tensorrt-features.md#1.14).

    Floating-point numbers become integers by truncation toward zero. Those beyond the range of int32 (of int64 for
    int64 and uint32, of uint64 for uint64) become its limit, and not-a-number 0; shorter types keep the low bits.
    Everything but zero is true; true is 1. Numbers beyond the largest 8-bit float become it.

    Example: `%y = trt.identity %x : (tensor<4xf32>) -> tensor<4xi32>`
    """

    name = "trt.identity"

    input = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Tensor]:
        return [with_element(self.input.type, element_or(self.output.type, element_of(self.input.type)))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        (x,) = arrays
        target = numpy_dtype(element_of(self.output.type))
        if x.dtype.kind in "fV" and target.kind in "iu":
            return [truncated(x, target)]
        if is_float8(element_of(self.output.type)):
            return [rounded(x.astype(np.float32))]
        with np.errstate(over="ignore"):
            return [x.astype(target)]

    @classmethod
    def cast(cls, value: SSAValue, element: Attribute, location: LocationAttr | None = None) -> IdentityOp:
        """The op that converts `value` to an element type."""
        op = cls.build(operands=[value], result_types=[with_element(value.type, element)])
        if location is not None:
            op.location = location
        return op
