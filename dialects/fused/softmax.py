"""Normalisation of one axis to a probability distribution, in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import element_of, is_float, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class SoftmaxOp(FusedOp):
    """`exp(x - max) / sum(exp(x - max))` along `axis`, or with `log` its logarithm.

    C1: floating-point numbers. C2: `axis` is an axis of the input. C3: the result has the input's type.

    Example: `%y = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>`
    """

    name = "fused.softmax"

    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    log = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def __init__(self, input: SSAValue, axis: int, log: bool = False):
        properties = {"axis": IntegerAttr(axis, i64), "log": BoolAttr.from_bool(log)}
        super().__init__(operands=[input], properties=properties, result_types=[input.type])

    def verify_(self) -> None:
        axis = self.axis.value.data
        require(
            is_float(element_of(self.input.type)),
            f"C1: {self.name} needs floating-point numbers, not {self.input.type}",
        )
        require(
            0 <= axis < rank(self.input.type), f"C2: {self.name} has no axis {axis}: its input is {self.input.type}"
        )
        require(self.input.type == self.output.type, f"C3: {self.name} of {self.input.type} is not {self.output.type}")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        return [normalized(arrays[0], self.axis.value.data, log=bool(self.log.value.data))]


def normalized(x: Array, axis: int, *, log: bool) -> Array:
    """The softmax of an array along an axis, or its logarithm."""
    import numpy as np

    if x.size == 0:
        return x
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        shifted = wide - wide.max(axis, keepdims=True)
        total = np.exp(shifted).sum(axis, keepdims=True)
        result = shifted - np.log(total) if log else np.exp(shifted) / total
        return result.astype(x.dtype)
