"""What the ops of mapped kernels mean lane-parallel: the lanes are the threads of some whole blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Operation

from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.interpreter_memory import DivergenceError, SharedBuffer
from mlirt.dialects.kernel.simt import (
    WARP,
    BarrierOp,
    BlockIdOp,
    GridSizeOp,
    ReuseSharedOp,
    SharedOp,
    ShuffleOp,
    ThreadIdOp,
)
from mlirt.dialects.scalar_semantics import scalar_dtype

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _thread_id(machine: Machine, lanes: Lanes, op: ThreadIdOp) -> None:
    lanes[op.result] = lanes.thread


def _block_id(machine: Machine, lanes: Lanes, op: BlockIdOp) -> None:
    """Blocks are numbered with axis 0 fastest, as CUDA does."""
    inner = 1
    for size in machine.grid[: op.axis.value.data]:
        inner *= size
    size = machine.grid[op.axis.value.data] if op.axis.value.data < len(machine.grid) else 1
    lanes[op.result] = lanes.block // inner % size


def _grid_size(machine: Machine, lanes: Lanes, op: GridSizeOp) -> None:
    import numpy as np

    axis = op.axis.value.data
    lanes[op.result] = np.asarray(machine.grid[axis] if axis < len(machine.grid) else 1, np.int64)


def _shared(machine: Machine, lanes: Lanes, op: SharedOp) -> None:
    type_ = memory(op.result)
    first, blocks = int(lanes.block[0]), lanes.count // machine.block_size
    dtype = scalar_dtype(type_.get_element_type())
    name = op.result.name_hint or "shared"
    lanes[op.result] = SharedBuffer(name, type_.get_shape()[0], dtype, first, blocks)


def _reuse_shared(machine: Machine, lanes: Lanes, op: ReuseSharedOp) -> None:
    old = lanes.buffer(op.source)
    assert isinstance(old, SharedBuffer)
    old.retire(machine.where(op), lanes.epochs.of(lanes.block[:: machine.block_size]))
    type_ = memory(op.result)
    dtype = scalar_dtype(type_.get_element_type())
    blocks = lanes.count // machine.block_size
    lanes[op.result] = SharedBuffer(
        op.result.name_hint or old.name, type_.get_shape()[0], dtype, old.first_block, blocks
    )


def _barrier(machine: Machine, lanes: Lanes, op: BarrierOp) -> None:
    lanes.epochs.start(together(machine, lanes, op))


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


def _shuffle(machine: Machine, lanes: Lanes, op: ShuffleOp) -> None:
    import numpy as np

    whole_warps(machine, lanes, op)
    lanes[op.result] = lanes.per_lane(op.value)[np.arange(lanes.count) ^ op.mask.value.data]


RULES = {
    "kernel.thread_id": _thread_id,
    "kernel.block_id": _block_id,
    "kernel.grid_size": _grid_size,
    "kernel.shared": _shared,
    "kernel.reuse_shared": _reuse_shared,
    "kernel.barrier": _barrier,
    "kernel.shuffle": _shuffle,
}
