"""Barriers in shared memory (mbarriers) that count arrivals of threads and bytes that copies bring."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.buffers import is_shared, memory
from mlirt.dialects.tensor_op import require


class _BarrierOp(IRDLOperation):
    """An op on the barrier at an index of shared memory of type i64."""

    barriers = operand_def(MemRefType)
    index = operand_def(IndexType())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$barriers `[` $index `]` attr-dict `:` type($barriers)"

    def verify_(self) -> None:
        check_barriers(self, self.barriers)


def check_barriers(op: IRDLOperation, barriers: SSAValue) -> None:
    """Raise where a buffer cannot hold barriers."""
    fits = is_shared(barriers) and memory(barriers).get_element_type() == i64
    require(fits, f"{op.name}: barriers are i64 in shared memory, not {barriers.type}")


@irdl_op_definition
class MbarrierInitOp(_BarrierOp):
    """Let a barrier start its phase 0, which ends after so many `arrivals` and all bytes that were announced.

    Other threads and copies may use it after `kernel.mbarrier_fence` and a barrier of the block or cluster.

    Example: `kernel.mbarrier_init %full[%i] {arrivals = 1 : i64} : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_init"

    arrivals = prop_def(IntegerAttr)

    def __init__(self, barriers: SSAValue, index: SSAValue, arrivals: int) -> None:
        super().__init__(operands=[barriers, index], properties={"arrivals": IntegerAttr(arrivals, i64)})

    def verify_(self) -> None:
        super().verify_()
        require(self.arrivals.value.data >= 1, f"{self.name}: a phase takes at least one arrival")


@irdl_op_definition
class MbarrierFenceOp(IRDLOperation):
    """Make the barriers that this thread has initialised known to copies."""

    name = "kernel.mbarrier_fence"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class MbarrierExpectOp(_BarrierOp):
    """Arrive, and announce `bytes` that copies will bring before the phase can end.

    Example: `kernel.mbarrier_expect %full[%i] {bytes = 24576 : i64} : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_expect"

    bytes = prop_def(IntegerAttr)

    def __init__(self, barriers: SSAValue, index: SSAValue, bytes_: int) -> None:
        super().__init__(operands=[barriers, index], properties={"bytes": IntegerAttr(bytes_, i64)})


@irdl_op_definition
class MbarrierArriveOp(_BarrierOp):
    """Arrive: what this thread has done before is seen by those who wait for the phase.

    Example: `kernel.mbarrier_arrive %empty[%i] : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_arrive"

    def __init__(self, barriers: SSAValue, index: SSAValue) -> None:
        super().__init__(operands=[barriers, index])


@irdl_op_definition
class MbarrierWaitOp(IRDLOperation):
    """Wait until the phase with a parity (0 or 1) has ended; before the first phase, one of parity 1 has.

    Example: `kernel.mbarrier_wait %full[%i] parity %p : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_wait"

    barriers = operand_def(MemRefType)
    index = operand_def(IndexType())
    parity = operand_def(IndexType())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$barriers `[` $index `]` `parity` $parity attr-dict `:` type($barriers)"

    def __init__(self, barriers: SSAValue, index: SSAValue, parity: SSAValue) -> None:
        super().__init__(operands=[barriers, index, parity])

    def verify_(self) -> None:
        check_barriers(self, self.barriers)
