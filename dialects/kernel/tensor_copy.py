"""Copies of boxes of tensors that the device makes by itself (TMA); one thread starts them, a barrier counts them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.buffers import is_shared, memory
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.kernel.transaction_barrier import check_barriers
from mlirt.dialects.tensor_op import require

BOX_ALIGNMENT = 128
"""Bytes that a box in shared memory is aligned to."""
SWIZZLE_LINES = 8
"""Lines after which the order of swizzled pieces repeats."""


def map_type(value: SSAValue) -> TensorMapType:
    """The type of a tensor map."""
    type_ = value.type
    assert isinstance(type_, TensorMapType)
    return type_


class CopyOp(IRDLOperation):
    """A copy from a tensor map to shared memory."""

    map = operand_def(TensorMapType)
    coordinates = var_operand_def(IndexType())
    target = operand_def(MemRefType)
    target_index = operand_def(IndexType())
    barriers = operand_def(MemRefType)
    barrier = operand_def(IndexType())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        check_barriers(self, self.barriers)
        type_ = map_type(self.map)
        fits = is_shared(self.target) and memory(self.target).get_element_type() == type_.element
        require(fits, f"{self.name}: copies {type_.element} to shared memory, not to {self.target.type}")
        require(
            len(self.coordinates) == type_.rank,
            f"{self.name}: {len(self.coordinates)} coordinates for a tensor with {type_.rank} dimensions",
        )


@irdl_op_definition
class LoadBoxOp(CopyOp):
    """Start to copy the box at some coordinates, outermost first; what lies outside of the tensor becomes zero.

    The barrier's current phase gets the bytes of the whole box. The target is 128-byte aligned (1024 with a swizzle).

    Example: `kernel.load_box %map[%i, %j], %tiles[%k], %full[%s] : !kernel.tensor_map<f16, [64, 64], swizzle = 128>,
    memref<4096xf16, "shared">, memref<4xi64, "shared">`
    """

    name = "kernel.load_box"

    assembly_format = (
        "$map `[` $coordinates `]` `,` $target `[` $target_index `]` `,` $barriers `[` $barrier `]` attr-dict `:` "
        "type($map) `,` type($target) `,` type($barriers)"
    )

    def __init__(
        self,
        map_: SSAValue,
        coordinates: Sequence[SSAValue],
        target: SSAValue,
        target_index: SSAValue,
        barriers: SSAValue,
        barrier: SSAValue,
    ) -> None:
        super().__init__(operands=[map_, coordinates, target, target_index, barriers, barrier])

    def verify_(self) -> None:
        super().verify_()
        require(not map_type(self.map).spatial.data, f"{self.name}: the map is walked by a window")


@irdl_op_definition
class LoadWindowOp(CopyOp):
    """Start to copy channels of consecutive pixels of a window's walk, each moved by `offsets`; zeros outside.

    The coordinates are image, the pixel's along each spatial dimension, and channel. The window walks along rows, from
    the map's lower corner to its upper one by its strides, and on to the next image.

    Example: `kernel.load_window %map[%n, %y, %x, %c] offsets[%r, %s], %tiles[%k], %full[%b] : ..`
    """

    name = "kernel.load_window"

    offsets = var_operand_def(IndexType())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$map `[` $coordinates `]` `offsets` `[` $offsets `]` `,` $target `[` $target_index `]` `,` "
        "$barriers `[` $barrier `]` attr-dict `:` type($map) `,` type($target) `,` type($barriers)"
    )

    def __init__(
        self,
        map_: SSAValue,
        coordinates: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        target: SSAValue,
        target_index: SSAValue,
        barriers: SSAValue,
        barrier: SSAValue,
    ) -> None:
        super().__init__(operands=[offsets, map_, coordinates, target, target_index, barriers, barrier])

    def verify_(self) -> None:
        super().verify_()
        spatial = map_type(self.map).spatial.data
        require(spatial > 0, f"{self.name}: the map is not walked by a window")
        require(len(self.offsets) == spatial, f"{self.name}: {len(self.offsets)} offsets for {spatial} dimensions")
