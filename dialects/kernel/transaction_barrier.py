"""Barriers in shared memory (mbarriers) that count arrivals of threads and bytes that copies bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import SYNCHRONIZES, Rule, Text

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site
    from mlirt.dialects.kernel.interpreter_stages import Mbarrier

BARRIERS = Rule(
    "barriers are i64 in shared memory",
    lambda x: x.barriers.memory_space == SHARED and x.barriers.get_element_type() == i64,
    "barriers are i64 in shared memory, not {barriers}",
)


class _OnBarrier(Instruction):
    """An instruction on the barrier at an index of shared memory of type i64."""

    barriers: SSAValue = fields.memref()
    index: SSAValue = fields.index()

    syntax = "$barriers `[` $index `]`"
    effects = SYNCHRONIZES
    is_asynchronous = True
    rules = (BARRIERS,)


@instruction
class MbarrierInitOp(_OnBarrier):
    """Let a barrier start its phase 0, which ends after so many `arrivals` and all bytes that were announced.

    Other threads and copies may use it after `kernel.mbarrier_fence` and a barrier of the block or cluster.

    Example: `kernel.mbarrier_init %full[%i] {arrivals = 1 : i64} : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_init"

    arrivals: IntegerAttr = fields.attribute(converter=fields.number)

    rules = (BARRIERS, Rule("a phase takes at least one arrival", lambda x: x.arrivals >= 1))
    cuda = Text("mbarrier_init", "{arrivals}")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        from mlirt.dialects.kernel.interpreter_memory import OutOfBoundsError
        from mlirt.dialects.kernel.interpreter_stages import Mbarrier

        memory, epochs = x.barriers.buffer, site.lanes.epochs.of(site.block)
        for row, block in enumerate(site.block.tolist()):
            at = int(x.index[row])
            if not 0 <= at < memory.extent:
                raise OutOfBoundsError(f"{site.where}: %{memory.name}[{at}] is out of bounds")
            made_by = int(site.thread[row]), int(epochs[row])
            site.machine.stages.barriers[memory, block, at] = Mbarrier(x.arrivals, made_by)


@instruction
class MbarrierFenceOp(Instruction):
    """Make the barriers that this thread has initialised known to copies."""

    name = "kernel.mbarrier_fence"

    effects = SYNCHRONIZES
    is_asynchronous = True
    cuda = Text("mbarrier_fence")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        """Here initialisations are known at once."""


@instruction
class AsyncFenceOp(Instruction):
    """Let matrix units and copies see what this thread has written to shared memory, once others have waited for it.

    They read shared memory another way than threads do, which no barrier alone orders behind what threads write.

    Example: `kernel.async_fence`
    """

    name = "kernel.async_fence"

    effects = SYNCHRONIZES
    is_asynchronous = True
    cuda = Text("async_fence")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        site.machine.stages.fence(site.block, site.thread)


@instruction
class MbarrierExpectOp(_OnBarrier):
    """Arrive, and announce `bytes` that copies will bring before the phase can end.

    Example: `kernel.mbarrier_expect %full[%i] {bytes = 24576 : i64} : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_expect"

    bytes: IntegerAttr = fields.attribute(converter=fields.number)

    cuda = Text("mbarrier_expect", "{bytes}")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        for row in range(len(site.active)):
            barrier_of(site, x.barriers, int(x.index[row]), row).arrive(site.where, x.bytes)


@instruction
class MbarrierArriveOp(_OnBarrier):
    """Arrive: what this thread has done before is seen by those who wait for the phase.

    Example: `kernel.mbarrier_arrive %empty[%i] : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_arrive"

    cuda = Text("mbarrier_arrive")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        for row in range(len(site.active)):
            barrier = barrier_of(site, x.barriers, int(x.index[row]), row)
            released = site.machine.tensor_memory.released(int(site.block[row]), int(site.thread[row]))
            if released is not None:
                barrier.attach(released)
            barrier.arrive(site.where)
        site.machine.coroutines.yield_to_others()


@instruction
class MbarrierWaitOp(_OnBarrier):
    """Wait until the phase with a parity (0 or 1) has ended; before the first phase, one of parity 1 has.

    Example: `kernel.mbarrier_wait %full[%i] parity %p : memref<4xi64, "shared">`
    """

    name = "kernel.mbarrier_wait"

    parity: SSAValue = fields.index()

    syntax = "$barriers `[` $index `]` `parity` $parity"
    cuda = Text("mbarrier_wait", operands=("barriers", "index", "parity"))

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        waited: dict[tuple[int, int], Mbarrier] = {}
        for row in range(len(site.active)):
            found = barrier_of(site, x.barriers, int(x.index[row]), row)
            waited[id(found), int(x.parity[row])] = found
        pairs = [(found, parity) for (_, parity), found in waited.items()]

        def open_() -> list[Mbarrier]:
            return [found for found, parity in pairs if not found.has_ended(parity)]

        site.machine.coroutines.until(lambda: not open_(), lambda: f"{site.where}: {open_()[0].missing()}")
        for found, _ in pairs:
            site.machine.stages.see(found)
        site.machine.tensor_memory.waited(site.block, site.thread)


def barrier_of(site: Site, barriers: Any, index: int, row: int) -> Mbarrier:
    """The barrier that an active lane names; others than who made it need a barrier of threads between."""
    from mlirt.dialects.kernel.interpreter_memory import RaceError

    block = site.block[row : row + 1]
    found = site.machine.stages.barrier(barriers.buffer, int(block[0]), index, site.where)
    thread, epoch = found.made_by
    if thread != int(site.thread[row]) and epoch == int(site.lanes.epochs.of(block)[0]):
        raise RaceError(f"{site.where}: there is no barrier between the initialisation of an mbarrier and its use")
    return found
