"""Picking elements or slices by index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.indexing import GatherMode, gather
from mlirt.dialects.length_requirements import LengthRequirement, at_least, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_bool, is_float, rank, with_dims
from mlirt.dialects.trt.operand_checks import check_axis, same_length

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class GatherModeAttr(EnumAttribute[GatherMode], SpacedOpaqueSyntaxAttribute):
    name = "trt.gather_mode"


@irdl_op_definition
class GatherOp(TensorOp):
    """Read `data` at `indices` (tensorrt-features.md#1.13a-1.13d).

    A negative index counts from the end, and an index that is still out of range reads zero. With
    b = num_elementwise_dims:

    | mode | result shape | result |
    |---|---|---|
    | default | data[:axis] + indices[b:] + data[axis+1:] | y[i.., j.., k..] = data[i.., indices[i_1..i_b, j..], k..] |
    | element | indices | y[.., j, ..] = data[.., indices[.., j, ..], ..] along `axis` |
    | nd | indices[:-1] + data[b+k:], k = indices[-1] | y[i.., k..] = data[i_1..i_b, indices[i..], k..] |

    C1: the indices are integers. C2: `axis` is an axis of the data. C3: num_elementwise_dims is 0 or 1 and at most
    axis in mode default, 0 in mode element, and less than both ranks in mode nd. C4: the elementwise dimensions of
    data and indices agree. C5: element: both ranks are equal. C6: nd: the last length of the indices is a number
    between 1 and rank(data) - num_elementwise_dims. C7: element: indices are no longer than data on the other axes.

    Example: `%y = trt.gather %x, %i {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3xi64>) -> tensor<2x3xf32>`
    """

    name = "trt.gather"

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    mode = prop_def(GatherModeAttr, default_value=GatherModeAttr(GatherMode.DEFAULT))
    axis = prop_def(IntegerAttr[I64], default_value=IntegerAttr(0, i64))
    num_elementwise_dims = prop_def(IntegerAttr[I64], default_value=IntegerAttr(0, i64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$data `,` $indices attr-dict `:` functional-type(operands, results)"

    @property
    def elementwise_dims(self) -> int:
        return self.num_elementwise_dims.value.data

    def check(self) -> None:
        element = element_of(self.indices.type)
        require(not is_float(element) and not is_bool(element), f"C1: {self.name} needs integer indices, not {element}")
        mode, axis, shared = self.mode.data, self.axis.value.data, self.elementwise_dims
        if mode is not GatherMode.ND:
            check_axis(self, "C2", axis, self.data.type)
        highest = {
            GatherMode.DEFAULT: min(1, axis, rank(self.indices.type)),
            GatherMode.ELEMENT: 0,
            GatherMode.ND: min(rank(self.data.type), rank(self.indices.type)) - 1,
        }[mode]
        require(
            0 <= shared <= highest,
            f"C3: num_elementwise_dims of {self.name} must be 0 to {highest} in mode {mode}, but it is {shared}",
        )
        if mode is GatherMode.ELEMENT:
            ranks = rank(self.data.type), rank(self.indices.type)
            require(
                ranks[0] == ranks[1],
                f"C5: {self.name} in mode element needs equal ranks, but they are {ranks[0]} and {ranks[1]}",
            )
        if mode is GatherMode.ND:
            depth, most = dims(self.indices.type)[-1], rank(self.data.type) - shared
            require(
                isinstance(depth, int) and 1 <= depth <= most,
                f"C6: invalid dimension in GatherND: the last length of the indices of {self.name} is {depth}, "
                f"expected 1 to {most} (rank of the data less num_elementwise_dims)",
            )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        pairs = list(zip(dims(self.data.type), dims(self.indices.type), strict=False))
        for left, right in pairs[: self.elementwise_dims]:
            yield equal("C4", f"elementwise dimensions of {self.name}", left, right)
        if self.mode.data is GatherMode.ELEMENT:
            for axis, (length, count) in enumerate(pairs):
                if axis != self.axis.value.data:
                    fault = f"the indices of {self.name} are {{right}} long on axis {axis}, its data only {{left}}"
                    yield at_least("C7", fault, length, count)

    def infer(self) -> Sequence[Tensor]:
        data, indices, axis, shared = (
            dims(self.data.type),
            dims(self.indices.type),
            self.axis.value.data,
            self.elementwise_dims,
        )
        common = [same_length(left, right) for left, right in list(zip(data, indices, strict=False))[:shared]]
        shape: list[Dim]
        if self.mode.data is GatherMode.DEFAULT:
            shape = [*common, *data[shared:axis], *indices[shared:], *data[axis + 1 :]]
        elif self.mode.data is GatherMode.ELEMENT:
            shape = [*indices]
        else:
            depth = indices[-1]
            assert isinstance(depth, int)
            shape = [*common, *indices[shared:-1], *data[shared + depth :]]
        return [with_dims(self.data.type, shape)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        data, indices = arrays
        return [gather(data, indices, self.mode.data, self.axis.value.data, self.elementwise_dims)]
