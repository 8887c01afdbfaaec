"""Copies from global to shared memory that go on while the threads compute."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.buffers import is_shared, memory
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width


@irdl_op_definition
class CopyAsyncOp(IRDLOperation):
    """Start to copy `count` elements (4, 8 or 16 bytes, so aligned) to shared memory; those beyond `valid` become zero.

    The copy belongs to the thread's current group. It has happened once the thread has waited for the group; others
    see it after a barrier.

    Example: `kernel.copy_async %x[%i], %tile[%j] valid %n {count = 4 : i64} : memref<?xf32>, memref<64xf32, "shared">`
    """

    name = "kernel.copy_async"

    source = operand_def(MemRefType)
    source_index = operand_def(IndexType())
    target = operand_def(MemRefType)
    target_index = operand_def(IndexType())
    valid = opt_operand_def(IndexType())
    count = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$source `[` $source_index `]` `,` $target `[` $target_index `]` (`valid` $valid^)? attr-dict `:` "
        "type($source) `,` type($target)"
    )

    def __init__(
        self,
        source: SSAValue,
        source_index: SSAValue,
        target: SSAValue,
        target_index: SSAValue,
        count: int,
        valid: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[source, source_index, target, target_index, [] if valid is None else [valid]],
            properties={"count": IntegerAttr(count, i64)},
        )

    @property
    def bytes(self) -> int:
        return self.count.value.data * byte_width(memory(self.source).get_element_type())

    def verify_(self) -> None:
        require(
            is_shared(self.target) and not is_shared(self.source), f"{self.name}: copies from global to shared memory"
        )
        require(
            memory(self.source).get_element_type() == memory(self.target).get_element_type(),
            f"{self.name}: {self.source.type} and {self.target.type} differ in the element type",
        )
        require(self.bytes in (4, 8, 16), f"{self.name}: copies 4, 8 or 16 bytes, not {self.bytes}")


@irdl_op_definition
class CommitAsyncOp(IRDLOperation):
    """Close the current group of asynchronous copies."""

    name = "kernel.commit_async"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class WaitAsyncOp(IRDLOperation):
    """Wait until only the `pending` newest groups of asynchronous copies may still be on their way.

    Example: `kernel.wait_async {pending = 1 : i64}`
    """

    name = "kernel.wait_async"

    pending = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})
