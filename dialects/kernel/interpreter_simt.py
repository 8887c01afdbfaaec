"""Threads that have to execute an op together: whole blocks, warps and warpgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Operation

from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.interpreter_memory import DivergenceError
from mlirt.dialects.kernel.simt import WARP, WARPGROUP

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def together(machine: Machine, lanes: Lanes, op: Operation) -> Array:
    """The blocks that execute an op; raises `DivergenceError` if only a part of a block's threads does."""
    waiting = lanes.active.reshape(-1, machine.block_size)
    count = waiting.sum(axis=1)
    partial = (count > 0) & (count < machine.block_size)
    if partial.any():
        block = int(partial.argmax())
        missing = int((~waiting[block]).argmax())
        raise DivergenceError(
            f"{machine.where(op)}: {count[block]} of the {machine.block_size} threads of block "
            f"{lanes.block[block * machine.block_size]} are there; thread {missing} is not"
        )
    return lanes.block[:: machine.block_size][count > 0]


def whole_warps(machine: Machine, lanes: Lanes, op: Operation) -> None:
    """Raise `DivergenceError` if only a part of a warp executes an op."""
    waiting = lanes.active.reshape(-1, WARP).sum(axis=1)
    partial = (waiting > 0) & (waiting < WARP)
    if partial.any():
        warp = int(partial.argmax())
        block, thread = lanes.block[warp * WARP], lanes.thread[warp * WARP]
        raise DivergenceError(
            f"{machine.where(op)}: {waiting[warp]} of {WARP} threads of a warp are there (block {block}, {thread})"
        )


def whole_warpgroups(machine: Machine, lanes: Lanes, op: Operation) -> list[int]:
    """The rows among the active lanes at which each warpgroup starts that executes an op; raises `DivergenceError` if
    only a part of one does.
    """
    import numpy as np

    active = np.flatnonzero(lanes.active)
    numbers = np.stack([lanes.block[active], lanes.thread[active] // WARPGROUP])
    _, first, count = np.unique(numbers, axis=1, return_index=True, return_counts=True)
    if (count < WARPGROUP).any():
        lane = int(active[first[count.argmin()]])
        raise DivergenceError(
            f"{machine.where(op)}: {count.min()} of {WARPGROUP} threads of a warpgroup are there "
            f"(block {lanes.block[lane]}, from thread {lanes.thread[lane]} on)"
        )
    return first.tolist()
