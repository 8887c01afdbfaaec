"""Padding at the borders of a tensor, and cropping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.integer_list import integers
from mlirt.dialects.length_requirements import LengthRequirement, at_least
from mlirt.dialects.slicing import PAD_READS, PadMode, read_slice
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, rank, with_dims

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class PadModeAttr(EnumAttribute[PadMode], SpacedOpaqueSyntaxAttribute):
    name = "trt.pad_mode"


@irdl_op_definition
class PaddingOp(TensorOp):
    """Add `pre` cells before and `post` cells after each axis; negative numbers crop (tensorrt-features.md#1.24).

    New cells hold the 0-D operand `value` (0 without it), mirror the input without repeating its edge (`reflect`),
    repeat the edge, or wrap around.

    C1: pre and post have one entry per axis. C2: no length becomes negative. C3: `value` has the input's element type
    and rank 0. C4: only mode constant makes cells from an axis of length 0.

    Example: `%y = trt.padding %x {pre = array<i64: 0, 1>, post = array<i64: 0, 1>, mode = #trt<pad_mode reflect>} :
    (tensor<2x3xf32>) -> tensor<2x5xf32>`
    """

    name = "trt.padding"

    input = operand_def(TensorType)
    value = opt_operand_def(TensorType)
    pre = prop_def(DenseArrayBase.constr(i64))
    post = prop_def(DenseArrayBase.constr(i64))
    mode = prop_def(PadModeAttr, default_value=PadModeAttr(PadMode.CONSTANT))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input (`,` $value^)? attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        pre, post, lengths = integers(self.pre), integers(self.post), dims(self.input.type)
        require(
            len(pre) == len(post) == len(lengths),
            f"C1: pre and post of {self.name} have {len(pre)} and {len(post)} entries, expected {len(lengths)}",
        )
        if self.value is not None:
            fits = element_of(self.value.type) == element_of(self.input.type) and rank(self.value.type) == 0
            require(
                fits,
                f"C3: value of {self.name} is {self.value.type}, expected a scalar of {element_of(self.input.type)}",
            )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        edges = zip(dims(self.input.type), integers(self.pre), integers(self.post), strict=True)
        for axis, (length, before, after) in enumerate(edges):
            size = length + before + after
            yield at_least("C2", f"{self.name} crops axis {axis} of length {length} to {{left}}", size, 0)
            if self.mode.data is not PadMode.CONSTANT:
                fault = f"{self.name} has nothing to {self.mode.data} on axis {axis} of length {{left}}"
                yield at_least("C4", fault, length, 1, where=size)

    def infer(self) -> Sequence[Tensor]:
        edges = zip(dims(self.input.type), integers(self.pre), integers(self.post), strict=True)
        return [with_dims(self.input.type, [length + before + after for length, before, after in edges])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        x, *value = arrays
        pre, post = integers(self.pre), integers(self.post)
        size = [length + before + after for length, before, after in zip(x.shape, pre, post, strict=True)]
        fill = value[0] if value else None
        return [read_slice(x, [-before for before in pre], size, [1] * x.ndim, PAD_READS[self.mode.data], fill)]
