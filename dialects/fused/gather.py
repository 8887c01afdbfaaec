"""Picking elements or slices by index, in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
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

from mlirt.dialects.blocked_layout import block_array, is_blocked, unblock_array
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.indexing import GatherMode, gather
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import channels, dims, element_of, is_bool, is_float, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class GatherModeAttr(EnumAttribute[GatherMode], SpacedOpaqueSyntaxAttribute):
    name = "fused.gather_mode"


@irdl_op_definition
class GatherOp(FusedOp):
    """Read `data` at `indices`; a negative index counts from the end, one that is still out of range reads zero.

    With b = num_elementwise_dims:

    | mode | result |
    |---|---|
    | default | y[i.., j.., k..] = data[i.., indices[i_1..i_b, j..], k..], the index stands at `axis` |
    | element | y[.., j, ..] = data[.., indices[.., j, ..], ..] along `axis` |
    | nd | y[i.., k..] = data[i_1..i_b, indices[i..], k..], the last dimension of the indices holds coordinates |

    In mode default, `axis` 1 of blocked images is that of their channels.

    C1: the indices are integers. C2: the result has the data's element type and the rank that the mode gives.
    C3: in mode nd the last length of the indices is a number.

    Example: `%y = fused.gather %x, %i {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3xi64>) -> tensor<2x3xf32>`
    """

    name = "fused.gather"
    FAMILY: ClassVar = "copy"

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    mode = prop_def(GatherModeAttr, default_value=GatherModeAttr(GatherMode.DEFAULT))
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    num_elementwise_dims = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$data `,` $indices attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        data: SSAValue,
        indices: SSAValue,
        result: Attribute,
        mode: GatherMode = GatherMode.DEFAULT,
        axis: int = 0,
        num_elementwise_dims: int = 0,
    ):
        super().__init__(
            operands=[data, indices],
            properties={
                "mode": GatherModeAttr(mode),
                "axis": IntegerAttr(axis, i64),
                "num_elementwise_dims": IntegerAttr(num_elementwise_dims, i64),
            },
            result_types=[result],
        )

    @property
    def elementwise_dims(self) -> int:
        return self.num_elementwise_dims.value.data

    @property
    def depth(self) -> int:
        """Coordinates per index in mode nd, 1 otherwise."""
        last = dims(self.indices.type)[-1] if self.mode.data is GatherMode.ND else 1
        return last if isinstance(last, int) else -1

    def verify_(self) -> None:
        element = element_of(self.indices.type)
        require(not is_float(element) and not is_bool(element), f"C1: {self.name} needs integer indices, not {element}")
        require(
            self.depth >= 0,
            f"C3: the last length of the indices of {self.name} is a number, but they are {self.indices.type}",
        )
        ranks = {
            GatherMode.DEFAULT: rank(self.data.type) + rank(self.indices.type) - 1 - self.elementwise_dims,
            GatherMode.ELEMENT: rank(self.indices.type),
            GatherMode.ND: rank(self.indices.type) - 1 + rank(self.data.type) - self.elementwise_dims - self.depth,
        }
        expected = ranks[self.mode.data]
        fits = rank(self.output.type) == expected and element_of(self.output.type) == element_of(self.data.type)
        require(
            fits, f"C2: the result of {self.name} has rank {expected} and the data's elements, not {self.output.type}"
        )

    def reference(self, *arrays: Array) -> Sequence[Array]:
        data, indices = arrays
        if is_blocked(self.data.type):
            count = channels(self.data.type)
            assert isinstance(count, int)
            data = unblock_array(data, count)
        found = gather(data, indices, self.mode.data, self.axis.value.data, self.elementwise_dims)
        if is_blocked(self.output.type):
            lanes = dims(self.output.type)[-1]
            assert isinstance(lanes, int)
            found = block_array(found, lanes)
        return [found]
