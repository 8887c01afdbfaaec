"""Tensors side by side in one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import element_of, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_IN_PLACE = "fused.in_place"


@irdl_op_definition
class ConcatOp(FusedOp):
    """The inputs one after the other along `axis`.

    The attribute `fused.in_place` has a boolean per input: true where the op that computes the input may write it
    straight into its part of the result, where other readers find it too; the others are copied. Of several
    concatenations that a value is marked in, the first has it.

    C1: there is an input. C2: all have the result's element type and rank. C3: `axis` is an axis of the result.
    C4: `fused.in_place` has one boolean per input.

    Example: `%y = fused.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>`
    """

    name = "fused.concat"
    FAMILY: ClassVar = "copy"

    inputs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    def __init__(self, inputs: Sequence[SSAValue], axis: int, result: Attribute):
        super().__init__(operands=[inputs], properties={"axis": IntegerAttr(axis, i64)}, result_types=[result])

    @property
    def in_place(self) -> tuple[bool, ...]:
        """For each input whether its producer may write into the result."""
        flags = self.attributes.get(_IN_PLACE)
        if not isinstance(flags, ArrayAttr):
            return (False,) * len(self.inputs)
        return tuple(flag == BoolAttr.from_bool(True) for flag in cast("ArrayAttr[Attribute]", flags))

    @in_place.setter
    def in_place(self, flags: Sequence[bool]) -> None:
        self.attributes[_IN_PLACE] = ArrayAttr(BoolAttr.from_bool(flag) for flag in flags)

    def verify_(self) -> None:
        require(len(self.inputs) > 0, f"C1: {self.name} has no input")
        target = self.output.type
        for value in self.inputs:
            same = element_of(value.type) == element_of(target) and rank(value.type) == rank(target)
            require(same, f"C2: {self.name} cannot put {value.type} into {target}")
        axis = self.axis.value.data
        require(0 <= axis < rank(target), f"C3: {self.name} has no axis {axis}: its result is {target}")
        require(
            len(self.in_place) == len(self.inputs),
            f"C4: {_IN_PLACE} has {len(self.in_place)} flags for {len(self.inputs)} inputs",
        )

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        return [np.concatenate(arrays, self.axis.value.data)]
