"""Asynchronous copies that are on their way: what they bring can be read only after the wait for their group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.interpreter_lanes import Epochs
from mlirt.dialects.kernel.interpreter_memory import Access, Buffer

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class _Copy:
    target: Buffer
    access: Access
    data: Array
    group: Array


class AsyncCopies:
    """The copies of all blocks, each in the group of its block that was open when it started."""

    def __init__(self) -> None:
        self._under_way: list[_Copy] = []
        self._committed: dict[int, int] = {}

    def start(self, target: Buffer, access: Access, data: Array) -> None:
        """The target is written from now on, and nothing until the wait."""
        group = self._groups(access.block)
        target.begin_write(access)
        self._under_way.append(_Copy(target, access, data, group))

    def commit(self, blocks: Array) -> None:
        """Open the next group of these blocks."""
        for block in blocks.tolist():
            self._committed[block] = self._committed.get(block, 0) + 1

    def wait(self, blocks: Array, pending: int, epochs: Epochs) -> None:
        """Finish all groups of these blocks but the newest `pending` committed ones.

        Other threads may read what has arrived after the next barrier, not after one between start and wait.
        """
        import numpy as np

        waiting = self._under_way
        self._under_way = []
        for copy in waiting:
            done = np.isin(copy.access.block, blocks) & (copy.group < self._groups(copy.access.block) - pending)
            if done.any():
                arrived = _pick(copy.access, done)
                copy.target.finish_write(epochs.now(arrived), copy.data[done])
            if not done.all():
                left = ~done
                self._under_way.append(_Copy(copy.target, _pick(copy.access, left), copy.data[left], copy.group[left]))

    def _groups(self, blocks: Array) -> Array:
        import numpy as np

        names, inverse = np.unique(blocks, return_inverse=True)
        return np.array([self._committed.get(block, 0) for block in names.tolist()], np.int64)[inverse]


def _pick(access: Access, chosen: Array) -> Access:
    return replace(
        access,
        index=access.index[chosen],
        block=access.block[chosen],
        thread=access.thread[chosen],
        epoch=access.epoch[chosen],
        phase=access.phase[chosen],
    )
