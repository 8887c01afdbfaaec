"""Reading a tensor beyond its borders: padding, cropping, and slices that reach outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.fused.fused_op import FusedOp, bind_dims, numbers_of
from mlirt.dialects.slicing import PAD_READS, PadMode, read_slice
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_count, element_of, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class PadModeAttr(EnumAttribute[PadMode], SpacedOpaqueSyntaxAttribute):
    name = "fused.pad_mode"


@irdl_op_definition
class PadOp(FusedOp):
    """`result[i..] = input[i * stride - pre ..]`, where a position outside of the input is determined by `mode`.

    | mode | position p outside of 0 .. n - 1 |
    |---|---|
    | constant | the element of `fill`, or zero |
    | edge | the nearest element |
    | reflect | mirrored at the border elements, as often as it takes |
    | wrap | p modulo n |

    A negative `pre` crops. The result's dimensions say how far it reaches. `stride` defaults to 1.
    C1: `pre` and `stride` have one entry per dimension, and the result has the input's rank and element type.
    C2: `fill` has one element of the input's type, and only mode constant has it.

    Example: `%y = fused.pad %x {pre = #trt.dims<["0", "1"]>, mode = #fused<pad_mode reflect>} : (tensor<2x3xf32>) ->
    tensor<2x5xf32>`
    """

    name = "fused.pad"
    FAMILY: ClassVar = "copy"

    input = operand_def(TensorType)
    fill = opt_operand_def(TensorType)
    pre = prop_def(DimsAttr)
    stride = opt_prop_def(DimsAttr)
    mode = prop_def(PadModeAttr, default_value=PadModeAttr(PadMode.CONSTANT))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        input: SSAValue,
        pre: Sequence[Dim],
        result: Attribute,
        mode: PadMode = PadMode.CONSTANT,
        fill: SSAValue | None = None,
        stride: Sequence[Dim] | None = None,
    ):
        super().__init__(
            operands=[input, fill],
            properties={
                "pre": DimsAttr.of(pre),
                "mode": PadModeAttr(mode),
                "stride": None if stride is None else DimsAttr.of(stride),
            },
            result_types=[result],
        )

    def strides(self) -> tuple[Dim, ...]:
        return (1,) * rank(self.input.type) if self.stride is None else self.stride.dims()

    def verify_(self) -> None:
        source, target = self.input.type, self.output.type
        counts = {len(self.pre.dims()), len(self.strides()), rank(source), rank(target)}
        require(
            len(counts) == 1,
            f"C1: pre and stride of {self.name} need one entry per dimension of {source} and of {target}",
        )
        require(element_of(source) == element_of(target), f"C1: {self.name} of {source} is not {target}")
        if self.fill is not None:
            fits = element_of(self.fill.type) == element_of(source) and element_count(self.fill.type) == 1
            require(fits, f"C2: the fill of {self.name} is one {element_of(source)}, not {self.fill.type}")
            require(self.mode.data is PadMode.CONSTANT, f"C2: {self.name} in mode {self.mode.data} has no fill")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        x, env = arrays[0], bind_dims(self, arrays)
        size, pre, stride = (
            numbers_of(some, env) for some in (dims(self.output.type), self.pre.dims(), self.strides())
        )
        fill = None if self.fill is None else arrays[-1].reshape(())
        return [read_slice(x, [-before for before in pre], size, stride, PAD_READS[self.mode.data], fill)]
