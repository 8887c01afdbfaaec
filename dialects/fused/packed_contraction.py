"""Matrix products with weights of few bits, with the scalar epilogue that was fused into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.epilogue import EpilogueOp
from mlirt.dialects.packed_codes import numbers
from mlirt.dialects.shared_attributes import integer
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class PackedMatmulOp(EpilogueOp):
    """`result[b.., m, n] = epilogue(sum over k of lhs[b.., m, k] * (code[n, k] - zero[n, k / block]) *
    scale[n, k / block], extras..)`.

    `codes` is `[n, bytes]` of unsigned integers of `bits` bits, the lowest bits of a byte first, each row filled up to
    whole blocks; `scale` is `[n, blocks]`, `zero` too or `[1, 1]`, one for all. With `float4` codes are 4-bit floats
    (e2m1), and `zero` counts as 0. C1: one access per extra operand.

    Example: `%y = fused.packed_matmul %a, %codes, %scale, %zero {bits = 4 : i64, block = 32 : i64} : (..) -> .. {
    ^bb0(%acc: f32): .. }`
    """

    name = "fused.packed_matmul"
    FAMILY: ClassVar = "matmul"

    lhs = operand_def(TensorType)
    codes = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = operand_def(TensorType)
    extras = var_operand_def(TensorType)
    bits = prop_def(IntegerAttr[I64])
    block = prop_def(IntegerAttr[I64])
    float4 = opt_prop_def(UnitAttr)
    access = prop_def(ArrayAttr[AccessAttr], default_value=ArrayAttr[AccessAttr]([]))
    output = result_def(TensorType)
    epilogue = region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "operands attr-dict `:` functional-type(operands, results) $epilogue"

    def __init__(
        self,
        lhs: SSAValue,
        weights: Sequence[SSAValue],
        result: Attribute,
        epilogue: Region,
        bits: int,
        block: int,
        extras: Sequence[SSAValue] = (),
        access: Sequence[AccessAttr] = (),
        float4: bool = False,
    ):
        super().__init__(
            operands=[lhs, *weights, extras],
            properties={
                "bits": integer(bits),
                "block": integer(block),
                "access": ArrayAttr(access),
                "float4": UnitAttr() if float4 else None,
            },
            result_types=[result],
            regions=[epilogue],
        )

    @property
    def depth(self) -> Dim:
        """How many products are summed."""
        return dims(self.lhs.type)[-1]

    def verify_(self) -> None:
        self.check_epilogue(self.extras, list(self.access), self.epilogue)

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        lhs, codes, scale, zero = arrays[:4]
        bits, block, is_float = self.bits.value.data, self.block.value.data, self.float4 is not None
        weights = numbers(codes, scale, zero, block, bits, lhs.shape[-1], is_float)
        return [self.apply_epilogue(lhs.astype(np.float64) @ weights.T, arrays, list(self.access), self.epilogue)]
