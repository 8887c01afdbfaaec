"""Normalisation of one axis to a probability distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, TensorType
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, element_of, is_float
from mlirt.dialects.trt.operand_checks import check_axis, tensor_type

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class SoftmaxOp(TensorOp):
    """y = exp(x - max) / sum(exp(x - max)) along one axis, or with `log` its logarithm (tensorrt-features.md#1.39).

    C1: the element type is a floating-point type. C2: `axis` is an axis of the input.

    Example: `%y = trt.softmax %x {axis = 1 : i64} : (tensor<1x10xf32>) -> tensor<1x10xf32>`
    """

    name = "trt.softmax"

    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    log = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        element = element_of(self.input.type)
        require(is_float(element), f"C1: {self.name} needs floating-point numbers, not {element}")
        check_axis(self, "C2", self.axis.value.data, self.input.type)

    def infer(self) -> Sequence[Tensor]:
        return [tensor_type(self.input.type)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.wide_arithmetic import narrow, widen

        (x,) = arrays
        axis = self.axis.value.data
        if x.size == 0:
            return [x]
        wide = widen(x)
        shifted = wide - wide.max(axis, keepdims=True)
        total = np.exp(shifted).sum(axis, keepdims=True)
        return [narrow(shifted - np.log(total) if self.log.value.data else np.exp(shifted) / total, x.dtype)]
