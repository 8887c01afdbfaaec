"""Memory and barriers of other blocks of a cluster, and what its blocks know of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.interpreter_lanes import Epochs
from mlirt.dialects.kernel.interpreter_memory import (
    Access,
    OutOfBoundsError,
    RaceError,
    SharedBuffer,
    UninitializedReadError,
)

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter_stages import Mbarrier

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


class Clusters:
    """Which blocks have met at a barrier of the cluster, and what they have told each other by mbarriers since.

    A clock counts the ends of reads, and barriers of clusters. A block may use the barriers of another one that were
    made before both met, and copy to memory that the other one reads once it was told, later, that it has read it; both
    meet again before one of them ends.
    """

    def __init__(self, size: int) -> None:
        self.size, self.clock = size, 0
        self._met: dict[int, int] = {}
        self._heard: dict[tuple[int, int], int] = {}  # by listener and teller
        self._reached: dict[int, str] = {}
        self._read_at: dict[SharedBuffer, Array] = {}

    def block(self, own: int, rank: int, where: str) -> int:
        """The block with a number in the cluster of a block."""
        if not 0 <= rank < self.size:
            raise OutOfBoundsError(f"{where}: a cluster has {self.size} blocks")
        return own // self.size * self.size + rank

    def meet(self, blocks: list[int]) -> None:
        """All blocks of some clusters have passed a barrier."""
        self.clock += 1
        for block in blocks:
            self._met[block] = self.clock
            self._reached.pop(block, None)
            first = block // self.size * self.size
            self._heard |= {(block, other): self.clock for other in range(first, first + self.size)}

    def refuse_unknown(self, there: int, made_at: int, where: str) -> None:
        """Whether the barriers of another block are there is known to those who met it since."""
        if self._met.get(there, -1) <= made_at:
            raise RaceError(f"{where}: no barrier of the cluster stands between the initialisation of an mbarrier of "
                            "another block and its use")  # fmt: skip

    def reach(self, own: int, there: int, where: str) -> None:
        """A block does something to another one, which must not have ended."""
        if there != own:
            self._reached[there] = where

    def tell(self, barrier: Mbarrier, own: int) -> None:
        """A block arrives: who waits for the phase knows what it has read."""
        if self.size > 1:
            barrier.telling[own] = self.clock

    def hear(self, own: int, barrier: Mbarrier) -> None:
        """A block has waited for a barrier."""
        for other, clock in barrier.told.items():
            self._heard[own, other] = max(clock, self._heard.get((own, other), -1))

    def note_read(self, memory: SharedBuffer, at: Array) -> None:
        """A matrix unit has read these elements."""
        import numpy as np

        if self.size > 1:
            self.clock += 1
            self._read_at.setdefault(memory, np.zeros(memory.data.size, np.int64))[at] = self.clock

    def refuse_reader(self, own: int, there: int, memory: SharedBuffer, at: Array, where: str) -> None:
        """Another block's elements are written when that block has told that it has read them."""
        read_at = self._read_at.get(memory)
        if there != own and read_at is not None and (read_at[at] > self._heard.get((own, there), -1)).any():
            raise RaceError(f"{where}: writes to %{memory.name} of another block of the cluster, and has not waited "
                            "for what tells that this block has read it")  # fmt: skip

    def finish(self, name: str) -> None:
        """All blocks have ended."""
        where, self._reached = next(iter(self._reached.values()), ""), {}
        if where:
            raise RaceError(f"kernel @{name}: a block may have ended before {where} reached it: no barrier of the "
                            "cluster stands behind that")  # fmt: skip
