"""CPU workers: their share of the tasks, their slot of memory, and prefetching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, WRITES, Text
from mlirt.dialects.symbolic import Dim, maximum, minimum, sym
from mlirt.dialects.tensor_types import element_name

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

_ELEMENTS = (
    *("float16", "bfloat16", "float32", "float64", "bool"),
    *(f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)),
)


@instruction
class WorkerShareOp(Instruction):
    """The tasks `first`, .., `last - 1` of `tasks` that this worker does; workers get equally many, give or take one.

    Example: `%first, %last = kernel.worker_share %n`
    """

    name = "kernel.worker_share"

    tasks: SSAValue = fields.index()
    first: OpResult = fields.result(IndexType())
    last: OpResult = fields.result(IndexType())

    syntax = "$tasks"
    effects = PURE
    cpu = Text("share", "worker, workers")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        """There is one worker here."""
        return x.tasks * 0, x.tasks


PARTS = "machine@parts"
"""The symbol for the number of parts that the machine cuts a kernel's tasks into at most; runs bind it."""


def slots_for(tasks: Dim) -> Dim:
    """How many parts of so many tasks are under way at once, at least one: each needs memory of its own."""
    if isinstance(tasks, int) and tasks <= 1:
        return 1
    slots = minimum(tasks, sym(PARTS))
    return slots if isinstance(tasks, int) else maximum(1, slots)


@instruction
class WorkerSlotOp(Instruction):
    """A number below `slots` that no other worker has which does some of the `tasks` at the same time.

    There are at least as many slots as `slots_for` says.

    Example: `%slot = kernel.worker_slot %n, %slots`
    """

    name = "kernel.worker_slot"

    tasks: SSAValue = fields.index()
    slots: SSAValue = fields.index()
    slot: OpResult = fields.result(IndexType())

    syntax = "$tasks `,` $slots"
    effects = PURE
    cpu = Text("worker_slot", "worker, workers")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        """There is one worker here."""
        return x.tasks * 0


@instruction
class PrefetchOp(Instruction):
    """Ask for the memory around an element to be brought near; nothing waits for it, and any address will do.

    Example: `kernel.prefetch %w[%at] : memref<?xf32>`
    """

    name = "kernel.prefetch"

    buffer: SSAValue = fields.memref()
    at: SSAValue = fields.index()

    syntax = "$buffer `[` $at `]`"
    # Not a read: it never fails, and has to stay where it is.
    effects = WRITES
    cpu = Text("prefetch")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        """All memory is near here."""


@instruction
class WorkerMemoryOp(Instruction):
    """A few elements of memory that each worker has of its own, for as long as the kernel runs.

    Example: `%m = kernel.worker_memory {elements = 896 : i64} : memref<?xi32>`
    """

    name = "kernel.worker_memory"

    elements: IntegerAttr = fields.attribute(converter=fields.number)
    memory: OpResult = fields.result(MemRefType)

    assembly_format = "attr-dict `:` type($memory)"
    effects = WRITES
    cpu = Text(
        lambda x: f"worker_memory_{element_name(x.memory.get_element_type())}",
        "{elements}",
        words=[f"worker_memory_{name}" for name in _ELEMENTS],
    )

    def __init__(self, element: Attribute, elements: int) -> None:
        self.fill(elements, memory=MemRefType(element, [DYNAMIC_INDEX]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        from mlirt.dialects.kernel.interpreter_memory import Buffer
        from mlirt.dialects.scalar_semantics import scalar_dtype

        data = np.zeros(int(x.elements), scalar_dtype(x.memory.get_element_type()))
        return Buffer(site.op.results[0].name_hint or "memory", data, initialized=False)
