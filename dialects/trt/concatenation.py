"""Joining tensors along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, rank, with_dims
from mlirt.dialects.trt.operand_checks import check_axis, same_elements, same_length

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ConcatenationOp(TensorOp):
    """Put tensors one after the other along `axis`; parts of length 0 are allowed (tensorrt-features.md#1.3).

    C1: there is at least one input. C2: all inputs have one element type. C3: all inputs have one rank.
    C4: `axis` is an axis of the inputs. C5: the lengths of all other axes agree.

    Example: `%y = trt.concatenation %a, %b {axis = 1 : i64} : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32>`
    """

    name = "trt.concatenation"

    inputs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        require(len(self.inputs) > 0, f"C1: {self.name} needs at least one input")
        same_elements(self, "C2")
        ranks = list(dict.fromkeys(rank(part.type) for part in self.inputs))
        require(len(ranks) == 1, f"C3: inputs of {self.name} have different ranks: {', '.join(map(str, ranks))}")
        axis = self.axis.value.data
        check_axis(self, "C4", axis, self.inputs[0].type)

    def length_requirements(self) -> Iterator[LengthRequirement]:
        for axis, (first, *others) in enumerate(zip(*(dims(part.type) for part in self.inputs), strict=True)):
            if axis != self.axis.value.data:
                for other in others:
                    yield equal("C5", f"axis {axis} of the inputs of {self.name}", first, other)

    def infer(self) -> Sequence[Tensor]:
        axis = self.axis.value.data
        shapes = [dims(part.type) for part in self.inputs]
        joined: Dim = 0
        for shape in shapes:
            joined = joined + shape[axis]
        sizes = [reduce(same_length, lengths) for lengths in zip(*shapes, strict=True)]
        return [with_dims(self.inputs[0].type, [*sizes[:axis], joined, *sizes[axis + 1 :]])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        return [np.concatenate(arrays, self.axis.value.data)]
