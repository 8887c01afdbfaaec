"""Shared memory that copies fill and matrix units read while the threads do something else.

What a copy brings is there for those who have waited for its barrier, and for nobody else; what a matrix unit reads
must not be written before its product has been waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.interpreter_memory import KernelError, RaceError, SharedBuffer, UninitializedReadError
from mlirt.dialects.kernel.simt import MAX_THREADS

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import OpResult

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class _Arrival:
    """Elements on their way to shared memory."""

    memory: SharedBuffer
    at: Array
    data: Array


@dataclass
class Mbarrier:
    """A barrier that counts threads and bytes; `phase` counts the phases that have ended."""

    arrivals: int
    made_by: tuple[int, int]
    left: int = 0
    bytes: int = 0
    phase: int = 0
    coming: list[_Arrival] = field(default_factory=list[_Arrival])
    arrived: list[_Arrival] = field(default_factory=list[_Arrival])
    attached: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    landing: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def __post_init__(self) -> None:
        self.left = self.arrivals

    def arrive(self, where: str, bytes_: int = 0) -> None:
        if self.left == 0:
            raise KernelError(f"{where}: more than {self.arrivals} arrivals in a phase")
        self.left -= 1
        self.bytes += bytes_
        self._advance()

    def bring(self, arrival: _Arrival) -> None:
        self.bytes -= arrival.data.nbytes
        self.coming.append(arrival)
        self._advance()

    def attach(self, landing: Callable[[], None]) -> None:
        """Let this happen when somebody has waited for the present phase."""
        self.attached.append(landing)

    def _advance(self) -> None:
        if self.left == 0 and self.bytes == 0:
            self.phase += 1
            self.left = self.arrivals
            self.arrived += self.coming
            self.coming = []
            self.landing += self.attached
            self.attached = []

    def has_ended(self, parity: int) -> bool:
        """Whether the phase with a parity has ended."""
        return self.phase % 2 != parity

    def missing(self) -> str:
        return f"{self.left} of {self.arrivals} arrivals and {self.bytes} bytes are missing in phase {self.phase}"


class Stages:
    """The barriers of all blocks, and which elements of shared memory copies and matrix units are at work on."""

    def __init__(self) -> None:
        self.barriers: dict[tuple[SharedBuffer, int, int], Mbarrier] = {}
        self.memories: dict[OpResult, SharedBuffer] = {}  # those of the blocks that run now
        self._readers: dict[SharedBuffer, Array] = {}
        self._coming: dict[SharedBuffer, Array] = {}
        self._products: dict[tuple[int, int], list[list[tuple[SharedBuffer, Array]]]] = defaultdict(list)

    def barrier(self, memory: SharedBuffer, block: int, index: int, where: str) -> Mbarrier:
        found = self.barriers.get((memory, block, index))
        if found is None:
            raise UninitializedReadError(f"{where}: %{memory.name}[{index}] is no barrier yet")
        return found

    def start(self, barrier: Mbarrier, memory: SharedBuffer, at: Array, data: Array, where: str) -> None:
        """Let elements of shared memory be written by a copy that a barrier counts."""
        import numpy as np

        readers = self._readers.get(memory)
        if readers is not None and readers[at].any():
            raise RaceError(f"{where}: writes to %{memory.name} while a matrix unit may still read it")
        coming = self._coming.setdefault(memory, np.zeros(memory.data.size, bool))
        if coming[at].any():
            raise RaceError(f"{where}: writes to %{memory.name} where nobody has waited for an earlier copy")
        coming[at] = True
        assert memory.initialized is not None
        memory.initialized[at] = memory.unfenced[at] = False
        barrier.bring(_Arrival(memory, at, data))

    def see(self, barrier: Mbarrier) -> None:
        """Somebody has waited: what the copies of ended phases brought is there."""
        for one in barrier.arrived:
            one.memory.data[one.at] = one.data
            self._coming[one.memory][one.at] = False
            assert one.memory.initialized is not None
            one.memory.initialized[one.at] = True
        barrier.arrived = []
        for land in barrier.landing:
            land()
        barrier.landing = []

    def read(self, memory: SharedBuffer, at: Array, where: str) -> Array:
        """Elements that a matrix unit reads from now on, until its product has been waited for."""
        import numpy as np

        assert memory.initialized is not None
        if not memory.initialized[at].all():
            raise UninitializedReadError(f"{where}: reads what nobody has written to %{memory.name}, or waited for")
        if memory.unfenced[at].any():
            raise RaceError(f"{where}: reads what threads have written to %{memory.name} without a fence between")
        readers = memory.readers = self._readers.setdefault(memory, np.zeros(memory.data.size, np.int32))
        readers[at] += 1
        return memory.data[at]

    def fence(self, block: Array, thread: Array) -> None:
        """What these threads have written may be read by matrix units."""
        import numpy as np

        fenced = block * MAX_THREADS + thread
        for memory in self.memories.values():
            loose = np.flatnonzero(memory.unfenced)
            writers, threads, *_ = memory.writer[:, loose]
            memory.unfenced[loose[np.isin(writers * MAX_THREADS + threads, fenced)]] = False

    def product(self, warpgroup: tuple[int, int], operands: list[tuple[SharedBuffer, Array]]) -> None:
        """A product of a warpgroup (block, number) reads these elements."""
        self._products[warpgroup].append(operands)

    def wait(self, warpgroup: tuple[int, int], pending: int) -> None:
        """All products of a warpgroup but the newest `pending` have ended."""
        queue = self._products[warpgroup]
        while len(queue) > pending:
            self.release(queue.pop(0))

    def release(self, operands: list[tuple[SharedBuffer, Array]]) -> None:
        """A product that read these elements has ended."""
        for memory, at in operands:
            self._readers[memory][at] -= 1
