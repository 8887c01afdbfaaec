"""Images whose pixels alternate in one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.fused.joining import IN_PLACE, JoiningOp
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.symbolic import Dim, floor_div, product
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

FIRST_AXIS = 2
"""The axis of an image that the first factor is for."""


@irdl_op_definition
class InterleaveOp(JoiningOp):
    """Pixels from each input in turn: `result[.., y * f + r, ..] = input r [.., y, ..]` along each axis with a factor.

    `factors` are those of the axes from the third on: the spatial ones of an image, in blocks of channels or not. There
    is an input for each combination of remainders, in row-major order. Where the result's length is no multiple of a
    factor, the last inputs are shorter by one. `fused.in_place` is as in `fused.concat`.

    C1: there are as many inputs as combinations of remainders. C2: all have the result's element type and rank, with
    an axis for each factor. C3: the lengths of each input are those of its remainders. C4: `fused.in_place` has one
    boolean per input.

    Example: `%y = fused.interleave %a, %b {factors = array<i64: 2>} : (tensor<1x4x3xf32>, tensor<1x4x2xf32>) ->
    tensor<1x4x5xf32>`
    """

    name = "fused.interleave"
    FAMILY: ClassVar = "copy"

    factors = prop_def(DenseArrayBase[IntegerType])

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    def __init__(self, inputs: Sequence[SSAValue], factors: Sequence[int], result: Attribute):
        super().__init__(operands=[inputs], properties={"factors": integer_list(factors)}, result_types=[result])

    def remainders(self, position: int) -> tuple[int, ...]:
        """The remainders of the pixels that an input gives."""
        found: list[int] = []
        for factor in reversed(integers(self.factors)):
            position, remainder = divmod(position, factor)
            found.append(remainder)
        return tuple(reversed(found))

    def parts(self, steps: Sequence[Dim]) -> list[tuple[Dim, tuple[Dim, ...]]]:
        return [self._part(position, steps) for position in range(len(self.inputs))]

    def _part(self, position: int, steps: Sequence[Dim]) -> tuple[Dim, tuple[Dim, ...]]:
        start, own = cast("Dim", 0), list(steps)
        pairs = zip(integers(self.factors), self.remainders(position), strict=True)
        for axis, (factor, remainder) in enumerate(pairs, FIRST_AXIS):
            start = start + steps[axis] * remainder
            own[axis] = steps[axis] * factor
        return start, tuple(own)

    def verify_(self) -> None:
        factors, result = integers(self.factors), dims(self.output.type)
        count = product(factors)
        require(len(self.inputs) == count, f"C1: {self.name} has {len(self.inputs)} inputs for {count} remainders")
        for position, value in enumerate(self.inputs):
            same = element_of(value.type) == element_of(self.output.type) and rank(value.type) == len(result)
            fits = same and len(result) >= FIRST_AXIS + len(factors)
            require(fits, f"C2: {self.name} cannot put {value.type} into {self.output.type}")
            expected = list(result)
            for axis, (factor, rest) in enumerate(zip(factors, self.remainders(position), strict=True), FIRST_AXIS):
                expected[axis] = length_of(result[axis], factor, rest)
            right = all(a == b for a, b in zip(dims(value.type), expected, strict=True))
            wanted = "x".join(map(str, expected))
            require(right, f"C3: {self.name} takes {wanted} as input {position}, not {value.type}")
        require(
            len(self.in_place) == len(self.inputs),
            f"C4: {IN_PLACE} has {len(self.in_place)} flags for {len(self.inputs)} inputs",
        )

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        shape = list(arrays[0].shape)
        strides = [1] * FIRST_AXIS + list(integers(self.factors))
        for axis, factor in enumerate(integers(self.factors), FIRST_AXIS):
            before = product(integers(self.factors)[axis - FIRST_AXIS + 1 :])
            assert isinstance(before, int)
            shape[axis] = sum(arrays[remainder * before].shape[axis] for remainder in range(factor))
        result = np.empty(shape, arrays[0].dtype)
        for position, array in enumerate(arrays):
            starts = [0] * FIRST_AXIS + list(self.remainders(position))
            places = [slice(start, None, step) for start, step in zip(starts, strides, strict=True)]
            result[tuple(places)] = array
        return [result]


def length_of(length: Dim, factor: int, remainder: int) -> Dim:
    """How many of `length` places have a remainder."""
    return floor_div(length - 1 - remainder, factor) + 1


__all__ = ["FIRST_AXIS", "InterleaveOp", "length_of"]
