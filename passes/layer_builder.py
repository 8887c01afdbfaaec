"""Puts layers before an op or at the end of a block, with its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.indexing import ScatterMode
from mlirt.dialects.locations import name_of
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor, dims, element_of, numpy_dtype
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseKindAttr, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.scatter import ScatterModeAttr, ScatterOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

COUNTER: Tensor = TensorType(i64, [])
FLAG: Tensor = TensorType(i1, [])


class LayerBuilder:
    """Appends layers to a block, or puts them before the op `at`; they bear the location of `named`."""

    def __init__(self, ctx: Context, block: Block, named: Operation, at: Operation | None = None) -> None:
        self.ctx, self.block, self.named, self.at = ctx, block, named, at

    @classmethod
    def in_front_of(cls, at: Operation, ctx: Context, named: Operation | None = None) -> Self:
        """A builder of layers before an op; they bear its location, or that of `named`."""
        assert at.parent is not None
        return cls(ctx, at.parent, named or at, at)

    def insert(self, op: Operation) -> Operation:
        op.location = self.named.location
        if self.at is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.at)
        return op

    def value(self, op: Operation) -> SSAValue:
        """The first result of an op, which is put into place."""
        return self.insert(op).results[0]

    def layer(
        self,
        kind: type[TensorOp],
        operands: Sequence[SSAValue | None],
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        return self.value(kind.build_inferred(operands, properties))

    def constant(self, array: Array, role: str = "") -> SSAValue:
        """A constant that is called after the layer, and after its role there."""
        name = name_of(self.named)
        return self.value(ConstantOp.from_array(array, weights_of(self.ctx), f"{name}.{role}" if role else name))

    def number(self, value: int) -> SSAValue:
        import numpy as np

        return self.constant(np.array(value, np.int64))

    def binary(self, kind: ElementwiseKind, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.layer(ElementwiseOp, [lhs, rhs], {"kind": ElementwiseKindAttr(kind)})

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        return self.value(IdentityOp.cast(value, element))

    def whole(self, value: SSAValue) -> SSAValue:
        """An integer as int64."""
        return value if element_of(value.type) == i64 else self.cast(value, i64)

    def length(self, value: SSAValue, axis: int) -> SSAValue:
        """The length of an axis as a 0-D int64 tensor."""
        size = dims(value.type)[axis]
        if isinstance(size, int):
            return self.number(size)
        return self.slice_at(self.layer(ShapeOp, [value]), self.number(axis), 0)

    def slice_at(self, value: SSAValue, place: SSAValue, axis: int) -> SSAValue:
        """The slice of a tensor at a place along an axis, without that axis."""
        return self.layer(GatherOp, [value, place], {"axis": IntegerAttr(axis, i64)})

    def with_slice(self, whole: SSAValue, place: SSAValue, part: SSAValue) -> SSAValue:
        """The tensor with another slice at a place along its first axis; none where the place is outside."""
        at = self.reshaped(place, [1, 1])
        update = self.reshaped(part, [1, *dims(part.type)])
        return self.layer(ScatterOp, [whole, at, update], {"mode": ScatterModeAttr(ScatterMode.ND)})

    def reshaped(self, value: SSAValue, shape: Sequence[Dim]) -> SSAValue:
        return self.layer(ShuffleOp, [value, None], {"reshape_dims": DimsAttr.of(shape)})

    def shaped(self, value: SSAValue, shape: Sequence[Dim]) -> SSAValue:
        """The value itself where it has the shape already."""
        return value if dims(value.type) == tuple(shape) else self.reshaped(value, shape)

    def transposed(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        if list(order) == list(range(len(order))):
            return value
        return self.layer(ShuffleOp, [value, None], {"first_transpose": DenseArrayBase.from_list(i64, list(order))})

    def zeros(self, element: Attribute, shape: Sequence[Dim]) -> SSAValue:
        """A tensor of zeros, one number that is read everywhere."""
        import numpy as np

        one = self.constant(np.zeros((1,) * len(shape), numpy_dtype(element)))
        if not shape:
            return one
        still = DenseArrayBase.from_list(i64, [0] * len(shape))
        properties: dict[str, Attribute] = {
            "start": DimsAttr.of([0] * len(shape)),
            "size": DimsAttr.of(shape),
            "stride": still,
        }
        return self.layer(SliceOp, [one, None, None, None, None], properties)
