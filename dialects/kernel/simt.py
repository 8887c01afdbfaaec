"""What the threads of a block do: ids, shared memory, barriers and shuffles.

A kernel that uses these ops is mapped: it says what one thread does, and its attribute `block_size` says how many
threads (a multiple of 32) a block has.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    MemRefType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from mlirt.dialects.kernel.buffers import SHARED, is_shared, memory
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width

WARP = 32
_SHARED_ALIGNMENT = 128
LARGEST_ALIGNMENT = 1024
"""Bytes that shared memory can be aligned to."""
_MOVED = (Float32Type(), Float64Type(), i32, i64)


@irdl_op_definition
class ThreadIdOp(IRDLOperation):
    """The number of this thread in its block."""

    name = "kernel.thread_id"

    result = result_def(IndexType())
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


class _GridOp(IRDLOperation):
    axis = prop_def(IntegerAttr)
    result = result_def(IndexType())
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, axis: int = 0) -> None:
        super().__init__(properties={"axis": IntegerAttr(axis, i64)}, result_types=[IndexType()])

    def verify_(self) -> None:
        require(
            0 <= self.axis.value.data < 3, f"{self.name}: a grid has the axes 0, 1 and 2, not {self.axis.value.data}"
        )


@irdl_op_definition
class BlockIdOp(_GridOp):
    """The number of this block along an axis of the grid."""

    name = "kernel.block_id"


@irdl_op_definition
class GridSizeOp(_GridOp):
    """How many blocks there are along an axis of the grid."""

    name = "kernel.grid_size"


@irdl_op_definition
class SharedOp(IRDLOperation):
    """Memory that the threads of a block share, aligned to `alignment` bytes; it holds nothing at first.

    Example: `%tile = kernel.shared : memref<1024xf16, "shared">`
    """

    name = "kernel.shared"

    alignment = prop_def(IntegerAttr, default_value=IntegerAttr(_SHARED_ALIGNMENT, i64))
    result = result_def(MemRefType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, size: int, element: Attribute, alignment: int = _SHARED_ALIGNMENT) -> None:
        super().__init__(
            properties={"alignment": IntegerAttr(alignment, i64)},
            result_types=[MemRefType(element, [size], memory_space=SHARED)],
        )

    def verify_(self) -> None:
        require(
            is_shared(self.result), f'{self.name}: the memory space is "shared", not {memory(self.result).memory_space}'
        )
        require(len(memory(self.result).get_shape()) == 1, f"{self.name}: shared memory has rank 1")
        require(memory(self.result).get_shape()[0] >= 0, f"{self.name}: the size of shared memory is a number")
        alignment = self.alignment.value.data
        fits = alignment >= _SHARED_ALIGNMENT and LARGEST_ALIGNMENT % alignment == 0
        require(fits, f"{self.name}: an alignment of {_SHARED_ALIGNMENT} to {LARGEST_ALIGNMENT} bytes, not {alignment}")

    @property
    def bytes(self) -> int:
        """Its size."""
        return memory(self.result).get_shape()[0] * byte_width(memory(self.result).get_element_type())


@irdl_op_definition
class ReuseSharedOp(IRDLOperation):
    """The same shared memory for something else: what it held is lost.

    No thread may have used it since the last barrier.

    Example: `%sums = kernel.reuse_shared %tile : memref<4096xf16, "shared"> -> memref<1024xf32, "shared">`
    """

    name = "kernel.reuse_shared"

    source = operand_def(MemRefType)
    result = result_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, size: int, element: Attribute) -> None:
        super().__init__(operands=[source], result_types=[MemRefType(element, [size], memory_space=SHARED)])

    def verify_(self) -> None:
        require(is_shared(self.source) and is_shared(self.result), f"{self.name}: both are shared memory")
        sizes = [
            memory(value).get_shape()[0] * byte_width(memory(value).get_element_type())
            for value in (self.source, self.result)
        ]
        require(sizes[1] <= sizes[0], f"{self.name}: {sizes[1]} bytes do not fit into {sizes[0]}")


def shared_offsets(func: Operation) -> tuple[dict[SSAValue, int], int]:
    """Where each piece of a kernel's shared memory starts, in bytes, and how much there is in all."""
    offsets: dict[SSAValue, int] = {}
    total = 0
    for op in func.walk():
        if isinstance(op, SharedOp):
            alignment = op.alignment.value.data
            offsets[op.result] = total = -(-total // alignment) * alignment
            total += -(-op.bytes // _SHARED_ALIGNMENT) * _SHARED_ALIGNMENT
    return offsets, total


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Wait for all threads of the block; what they have written before is visible after."""

    name = "kernel.barrier"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value that the thread whose number in the warp differs by `exclusive or` with `mask` has.

    Example: `%other = kernel.shuffle %v {mask = 16 : i64} : f32 -> f32`
    """

    name = "kernel.shuffle"

    value = operand_def(AnyAttr())
    mask = prop_def(IntegerAttr)
    result = result_def(AnyAttr())
    # It depends on the other threads: it must not be moved into or out of a branch.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, mask: int) -> None:
        super().__init__(operands=[value], properties={"mask": IntegerAttr(mask, i64)}, result_types=[value.type])

    def verify_(self) -> None:
        require(0 < self.mask.value.data < WARP, f"{self.name}: the mask is between 1 and {WARP - 1}")
        require(self.value.type in _MOVED, f"{self.name}: moves numbers of 32 or 64 bits, not {self.value.type}")
