"""What the ops of clusters mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Operation

from mlirt.dialects.kernel.cluster import ClusterBarrierOp, ClusterRankOp, RemoteSharedOp
from mlirt.dialects.kernel.interpreter_lanes import Epochs, Lanes
from mlirt.dialects.kernel.interpreter_memory import (
    Access,
    DivergenceError,
    OutOfBoundsError,
    RaceError,
    SharedBuffer,
    UninitializedReadError,
)
from mlirt.dialects.kernel.interpreter_simt import together

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class RemoteBuffer(SharedBuffer):
    """The shared memory of another block of the cluster: read only, after a barrier of the cluster."""

    def __init__(self, source: SharedBuffer, block_of: dict[int, int], epochs: Epochs) -> None:
        self.__dict__.update(source.__dict__)
        self._block_of, self._epochs = block_of, epochs

    def read(self, access: Access) -> Array:
        import numpy as np

        block = np.array([self._block_of[one] for one in access.block.tolist()], np.int64)
        self._refuse_outside(access, (access.index < 0) | (access.index >= self.extent), self.extent)
        at = access.index + (block - self.first_block) * self.extent
        assert self.initialized is not None
        if not self.initialized[at].all():
            raise UninitializedReadError(f"{access.where} reads of %{self.name} what its block has not written")
        if ((self.writer[2, at] == self._epochs.of(block)) & (block != access.block)).any():
            raise RaceError(f"{access.where} reads of %{self.name} what its block writes: no barrier stands between")
        return self.data[at]

    def write(self, access: Access, values: Array) -> None:
        raise RaceError(f"{access.where}: only its own block writes to %{self.name}")


def _rank(machine: Machine, lanes: Lanes, op: ClusterRankOp) -> None:
    lanes[op.result] = lanes.block % machine.cluster


def _barrier(machine: Machine, lanes: Lanes, op: ClusterBarrierOp) -> None:
    import numpy as np

    blocks = together(machine, lanes, op)
    _, count = np.unique(blocks // machine.cluster, return_counts=True)
    if (count < machine.cluster).any():
        raise DivergenceError(f"{machine.where(op)}: not all {machine.cluster} blocks of a cluster are there")
    lanes.epochs.start(blocks)


def _remote(machine: Machine, lanes: Lanes, op: RemoteSharedOp) -> None:
    source = lanes.buffer(op.source)
    assert isinstance(source, SharedBuffer)
    ranks = lanes.per_lane(op.rank)[lanes.active]
    blocks = lanes.block[lanes.active]
    if ((ranks < 0) | (ranks >= machine.cluster)).any():
        raise OutOfBoundsError(f"{machine.where(op)}: a cluster has {machine.cluster} blocks")
    targets = blocks // machine.cluster * machine.cluster + ranks
    found = dict(zip(blocks.tolist(), targets.tolist(), strict=True))
    if any(found[block] != target for block, target in zip(blocks.tolist(), targets.tolist(), strict=True)):
        raise DivergenceError(f"{machine.where(op)}: the threads of a block name different blocks")
    lanes[op.result] = RemoteBuffer(source, found, lanes.epochs)


def _nothing(machine: Machine, lanes: Lanes, op: Operation) -> None:
    """Launches run one after the other here."""


RULES = {
    "kernel.cluster_rank": _rank,
    "kernel.cluster_barrier": _barrier,
    "kernel.remote_shared": _remote,
    "kernel.wait_dependency": _nothing,
    "kernel.launch_dependents": _nothing,
}
