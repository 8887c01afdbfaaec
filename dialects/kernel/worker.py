"""What a worker of a CPU kernel does beside computing: take its share of the tasks, ask for memory early."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryWriteEffect, Pure

from mlirt.dialects.symbolic import Dim, maximum, minimum, sym


@irdl_op_definition
class WorkerShareOp(IRDLOperation):
    """The tasks `first`, .., `last - 1` of `tasks` that this worker does; workers get equally many, give or take one.

    Example: `%first, %last = kernel.worker_share %n`
    """

    name = "kernel.worker_share"

    tasks = operand_def(IndexType())
    first = result_def(IndexType())
    last = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "$tasks attr-dict"

    def __init__(self, tasks: SSAValue) -> None:
        super().__init__(operands=[tasks], result_types=[IndexType(), IndexType()])


PARTS = "machine@parts"
"""The symbol for the number of parts that the machine cuts a kernel's tasks into at most; runs bind it."""


def slots_for(tasks: Dim) -> Dim:
    """How many parts of so many tasks are under way at once, at least one: each needs memory of its own."""
    if isinstance(tasks, int) and tasks <= 1:
        return 1
    slots = minimum(tasks, sym(PARTS))
    return slots if isinstance(tasks, int) else maximum(1, slots)


@irdl_op_definition
class WorkerSlotOp(IRDLOperation):
    """A number below `slots` that no other worker has which does some of the `tasks` at the same time.

    There are at least as many slots as `slots_for` says.

    Example: `%slot = kernel.worker_slot %n, %slots`
    """

    name = "kernel.worker_slot"

    tasks = operand_def(IndexType())
    slots = operand_def(IndexType())
    slot = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "$tasks `,` $slots attr-dict"

    def __init__(self, tasks: SSAValue, slots: SSAValue) -> None:
        super().__init__(operands=[tasks, slots], result_types=[IndexType()])


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Ask for the memory around an element to be brought near; nothing waits for it, and any address will do.

    Example: `kernel.prefetch %w[%at] : memref<?xf32>`
    """

    name = "kernel.prefetch"

    buffer = operand_def(MemRefType)
    at = operand_def(IndexType())

    # Not a read: it never fails, and has to stay where it is.
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$buffer `[` $at `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, at: SSAValue) -> None:
        super().__init__(operands=[buffer, at])
