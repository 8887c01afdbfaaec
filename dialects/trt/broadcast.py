"""Dimensions that a run may repeat, made explicit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.broadcasting import repeated_to
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, rank, with_dims
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class BroadcastOp(TensorOp):
    """The input with the dimensions of `size`: each is as long as before, or was 1 and is repeated.

    Which of both it is may be known only when a run has its shapes: an input of length `m` beside one of length `n` has
    the length `broadcast(m, n)`, whichever of them is 1. Other lengths are refused when shapes are bound.

    C1: there is one length per dimension of the input. C2: lengths that are known are equal, or the input's is 1.

    Example: `%y = trt.broadcast %x {size = #trt.dims<["n", "3"]>} :
    (tensor<?x3xf32, #trt.dims<["m", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>`
    """

    name = "trt.broadcast"

    input = operand_def(TensorType)
    size = prop_def(DimsAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        own, wanted = dims(self.input.type), self.size.dims()
        require(
            len(own) == len(wanted),
            f"C1: {self.name} has {len(wanted)} lengths, its input has rank {rank(self.input.type)}",
        )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        for length, target in zip(dims(self.input.type), self.size.dims(), strict=True):
            yield from repeated_to("C2", length, target)

    def infer(self) -> Sequence[Tensor]:
        return [with_dims(self.input.type, self.size.dims())]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.symbol_values import resolve

        own, wanted = arrays[0].shape, resolve(self, self.size.dims(), arrays)
        if any(length not in (1, other) for length, other in zip(own, wanted, strict=True)):
            raise InvalidInputError(f"its lengths {own} must be equal to {wanted}, or 1")
        return [np.ascontiguousarray(np.broadcast_to(arrays[0], wanted))]

    @classmethod
    def of(cls, value: SSAValue, size: Sequence[Dim]) -> BroadcastOp:
        """The op that gives `value` the dimensions of `size`."""
        return cls.build_inferred([value], {"size": DimsAttr.of(size)})
