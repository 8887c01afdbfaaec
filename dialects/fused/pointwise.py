"""One scalar computation for each element of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import (
    FusedOp,
    bind_dims,
    check_access,
    check_region,
    element_types,
    gather_operand,
    numbers_of,
    region_values,
)
from mlirt.dialects.scalar_semantics import evaluate_region
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, numpy_dtype

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class PointwiseOp(FusedOp):
    """Compute each element of the results from one element of each operand.

    The iteration space is the dimensions of the results, which are equal. `access` says which element of an operand an
    iteration reads; so broadcasts, transposes, slices and strided reads are pointwise ops with an identity region. A
    slice with the attribute `fused.shown` has no memory of its own: it is read where its operand lies.

    C1: one access per operand. C2: all results have the same dimensions. C3: the region takes one scalar per operand
    and yields one per result.

    Example:

        %y = fused.pointwise %x, %b {access = [#fused.access<["d0", "d1"]>, #fused.access<["0", "d1"]>]}
             : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32> {
        ^bb0(%0: f32, %1: f32):
          %2 = arith.addf %0, %1 : f32
          fused.yield %2 : f32
        }
    """

    name = "fused.pointwise"

    inputs = var_operand_def(TensorType)
    access = prop_def(ArrayAttr[AccessAttr])
    outputs = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type($inputs, $outputs) $body"

    def __init__(
        self, inputs: Sequence[SSAValue], access: Sequence[AccessAttr], results: Sequence[Attribute], body: Region
    ):
        super().__init__(
            operands=[inputs], properties={"access": ArrayAttr(access)}, result_types=[results], regions=[body]
        )

    def verify_(self) -> None:
        require(
            len(self.access) == len(self.inputs),
            f"C1: {self.name} has {len(self.inputs)} operands and {len(self.access)} accesses",
        )
        space = dims(self.outputs[0].type)
        require(
            all(dims(out.type) == space for out in self.outputs), f"C2: the results of {self.name} differ in dimensions"
        )
        for operand, access in zip(self.inputs, self.access, strict=True):
            check_access(self, access, operand.type, len(space))
        check_region(self, self.body, element_types(self.inputs), element_types(self.outputs))

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        env = bind_dims(self, arrays)
        space = numbers_of(dims(self.outputs[0].type), env)
        picked = [gather_operand(a, access, space, env) for a, access in zip(arrays, self.access, strict=True)]
        yielded = evaluate_region(self.body, picked, region_values(space, env))
        return [
            np.broadcast_to(value, space).astype(numpy_dtype(element_of(out.type)))
            for value, out in zip(yielded, self.outputs, strict=True)
        ]
