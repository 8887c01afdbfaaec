"""Tensors side by side in one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, cast

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.fused.joining import IN_PLACE, JoiningOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ConcatOp(JoiningOp):
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

    axis = prop_def(IntegerAttr)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    def __init__(self, inputs: Sequence[SSAValue], axis: int, result: Attribute):
        super().__init__(operands=[inputs], properties={"axis": IntegerAttr(axis, i64)}, result_types=[result])

    def parts(self, steps: Sequence[Dim]) -> list[tuple[Dim, tuple[Dim, ...]]]:
        axis = self.axis.value.data
        starts = accumulate((dims(value.type)[axis] for value in self.inputs), initial=cast("Dim", 0))
        return [(start * steps[axis], tuple(steps)) for start, _ in zip(starts, self.inputs, strict=False)]

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
            f"C4: {IN_PLACE} has {len(self.in_place)} flags for {len(self.inputs)} inputs",
        )

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        return [np.concatenate(arrays, self.axis.value.data)]
