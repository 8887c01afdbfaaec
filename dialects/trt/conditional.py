"""The borders of conditionals, as a network of layers has them: condition, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import SymbolRefAttr, TensorType, i1
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryWriteEffect, Pure

from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import UNKNOWN_PREFIX, Tensor, dims, element_of, rank, with_dims
from mlirt.dialects.trt.boundary import BoundaryOp


@irdl_op_definition
class ConditionOp(BoundaryOp):
    """What decides a conditional (tensorrt-features.md#8.1, 8.2).

    C1: the condition is a 0-D boolean tensor.

    Example: `trt.condition %c {conditional = @choice} : tensor<i1>`
    """

    name = "trt.condition"

    condition = operand_def(TensorType)
    conditional = prop_def(SymbolRefAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition attr-dict `:` type($condition)"

    def check(self) -> None:
        of = self.condition.type
        require(rank(of) == 0 and element_of(of) == i1, f"C1: the condition is a 0-D Bool tensor, got {of}")

    def infer(self) -> Sequence[Tensor]:
        return []


@irdl_op_definition
class IfInputOp(BoundaryOp):
    """A tensor as it enters a conditional: what depends on it is computed only in the branch that is taken (8.4).

    Example: `%a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "trt.if_input"

    input = operand_def(TensorType)
    conditional = prop_def(SymbolRefAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Tensor]:
        return [with_dims(self.input.type, dims(self.input.type))]


@irdl_op_definition
class IfOutputOp(BoundaryOp):
    """The first input where the condition holds, else the second (8.3).

    C1: both have one element type and one rank. Lengths that differ are known only to the run.

    Example: `%y = trt.if_output %t, %f {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "trt.if_output"

    then = operand_def(TensorType)
    otherwise = operand_def(TensorType)
    conditional = prop_def(SymbolRefAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$then `,` $otherwise attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        left, right = self.then.type, self.otherwise.type
        fits = element_of(left) == element_of(right) and rank(left) == rank(right)
        require(fits, f"C1: the inputs of an IIfConditionalOutputLayer have one type, got {left} and {right}")

    def infer(self) -> Sequence[Tensor]:
        pairs = zip(dims(self.then.type), dims(self.otherwise.type), strict=True)
        lengths: list[Dim] = [a if a == b else sym(f"{UNKNOWN_PREFIX}{k}") for k, (a, b) in enumerate(pairs)]
        return [with_dims(self.then.type, lengths)]
