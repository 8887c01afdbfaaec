"""Tensor memory of all blocks: what products write there while threads do something else, and who may load it when.

A product writes at once here, but what it wrote counts as missing until somebody has waited for a barrier that its
thread committed it to; tiles in shared memory count as being read for as long. What a warp has loaded counts as being
read until somebody has waited for a barrier at which the warp has arrived behind a fence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.interpreter_memory import (
    DivergenceError,
    KernelError,
    OutOfBoundsError,
    RaceError,
    SharedBuffer,
    UninitializedReadError,
)
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.tensor_memory import HALF_LANES, LANE, TENSOR_COLUMNS, TENSOR_LANES

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter_stages import Stages

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_Cells: TypeAlias = "tuple[slice, slice]"
_NOBODY = -1


@dataclass(eq=False)
class _Product:
    """One that its thread has started: what it writes, and what it reads of shared memory."""

    cells: _Cells
    stages: Stages
    tiles: list[tuple[SharedBuffer, Array]]
    is_done: bool = False


@dataclass
class _Loads:
    """What a warp has loaded: not behind a fence yet, and behind one."""

    loose: list[_Cells] = field(default_factory=list["_Cells"])
    fenced: list[_Cells] = field(default_factory=list["_Cells"])


class BlockTensorMemory:
    """The tensor memory of a block."""

    def __init__(self) -> None:
        import numpy as np

        shape = TENSOR_LANES, TENSOR_COLUMNS
        self.relinquished = False
        self._owner = np.full(TENSOR_COLUMNS, _NOBODY)  # the warp that has allocated a column
        self._bits = np.zeros(shape, np.int32)
        self._written = np.zeros(shape, bool)
        self._coming, self._readers = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        self._started_by = np.full(shape, _NOBODY)  # threads, of what is coming
        self._cells: list[_Cells] = []
        self._products: dict[int, list[_Product]] = defaultdict(list)
        self._loads: dict[int, _Loads] = defaultdict(_Loads)
        self._waited: set[int] = set()  # threads without a fence since
        self._last_load = _NOBODY  # the epoch of the last one

    # Allocation.

    def allocate(self, columns: int, warp: int, where: str) -> int:
        """The address of so many columns: the last ones that are free, so that nobody takes 0 for granted."""
        if self.relinquished:
            raise KernelError(f"{where}: the block has told that it allocates no more")
        for first in range(TENSOR_COLUMNS - columns, -1, -columns):
            if (self._owner[first : first + columns] == _NOBODY).all():
                self._owner[first : first + columns] = warp
                self._written[:, first : first + columns] = False
                return first
        raise KernelError(f"{where}: there are no {columns} columns left, and this block waits for itself")

    def free(self, address: int, columns: int, warp: int, epoch: int, where: str) -> None:
        lane, first = divmod(address, LANE)
        owners = self._owner[first : first + columns]
        if lane or len(owners) < columns or (owners != warp).any():
            raise KernelError(f"{where}: warp {warp} has not allocated {columns} columns at {address}")
        if self._coming[:, first : first + columns].any():
            raise RaceError(f"{where}: nobody has waited for products that write there")
        if any(one.loose for other, one in self._loads.items() if other != warp):
            raise RaceError(f"{where}: there is no fence behind loads of other warps")
        if self._last_load == epoch:
            raise RaceError(f"{where}: there is no barrier between loads and this")
        self._owner[first : first + columns] = _NOBODY

    @property
    def is_free(self) -> bool:
        return bool((self._owner == _NOBODY).all())

    # Products.

    def add(self, address: int, product: Array, whole: bool, accumulate: bool, thread: int, where: str) -> None:
        """Write a product that a thread has started."""
        import numpy as np

        lane, first = divmod(address, LANE)
        rows, columns = product.shape
        if lane:
            raise OutOfBoundsError(f"{where}: a product starts at lane {lane}")
        cells = self._own(first, columns, 0, rows, where)
        if self._readers[cells].any():
            raise RaceError(f"{where}: overwrites what a warp may still load")
        others = (self._coming[cells] > 0) & (self._started_by[cells] != thread)
        if others.any():
            raise RaceError(f"{where}: another thread's product may still write there")
        if accumulate and not self._written[cells].all():
            raise UninitializedReadError(f"{where}: adds to what no product has written")
        dtype = np.dtype(np.int32 if whole else np.float32)
        before = self._bits[cells].view(dtype) if accumulate else np.zeros(product.shape, dtype)
        self._bits[cells] = (before + product.astype(dtype)).view(np.int32)
        self._written[cells] = True
        self._coming[cells] += 1
        self._started_by[cells] = thread
        self._cells.append(cells)

    def issued(self, thread: int, stages: Stages, tiles: list[tuple[SharedBuffer, Array]]) -> None:
        """The product that was added last is on its way."""
        self._products[thread].append(_Product(self._cells.pop(), stages, tiles))

    def committed(self, thread: int) -> Callable[[], None]:
        """What happens when somebody has waited for all products that a thread has started until now."""
        own = [one for one in self._products[thread] if not one.is_done]
        self._products[thread] = own
        products = list(own)

        def land() -> None:
            for one in products:
                if not one.is_done:
                    one.is_done = True
                    self._coming[one.cells] -= 1
                    one.stages.release(one.tiles)

        return land

    # Loads.

    def load(self, addresses: Array, columns: int, warp: int, epoch: int, where: str) -> Array:
        """The bits of 16 lanes, which the warp reads until it tells others that it has."""
        if (addresses != addresses[0]).any():
            raise DivergenceError(f"{where}: the threads of a warp name different addresses")
        lane, first = divmod(int(addresses[0]), LANE)
        own = warp * WARP % TENSOR_LANES
        if lane not in (own, own + HALF_LANES):
            raise OutOfBoundsError(f"{where}: warp {warp} loads from lane {lane}, not from {own} or {own + HALF_LANES}")
        cells = self._own(first, columns, lane, HALF_LANES, where)
        if self._coming[cells].any():
            raise RaceError(f"{where}: loads what a product may still write")
        if not self._written[cells].all():
            raise UninitializedReadError(f"{where}: loads what no product has written")
        self._readers[cells] += 1
        self._loads[warp].loose.append(cells)
        self._last_load = epoch
        return self._bits[cells]

    def _own(self, first: int, columns: int, lane: int, lanes: int, where: str) -> _Cells:
        owners = self._owner[first : first + columns]
        if len(owners) < columns or (owners == _NOBODY).any():
            raise OutOfBoundsError(f"{where}: columns {first} to {first + columns - 1} are not allocated")
        return slice(lane, lane + lanes), slice(first, first + columns)

    def released(self, thread: int) -> Callable[[], None] | None:
        """What happens when somebody has waited for an arrival of a thread: the loads of its warp have been made."""
        loads = self._loads[thread // WARP]
        fenced, loads.fenced = loads.fenced, []

        def land() -> None:
            for cells in fenced:
                self._readers[cells] -= 1

        return land if fenced else None

    # Fences.

    def fence(self, thread: int, after: bool) -> None:
        if after:
            self._waited.discard(thread)
        else:
            loads = self._loads[thread // WARP]
            loads.fenced += loads.loose
            loads.loose = []

    def waited(self, thread: int) -> None:
        """A thread has waited for a barrier: what it does next is not ordered behind that without a fence."""
        self._waited.add(thread)

    def need_fence(self, thread: int, where: str) -> None:
        if thread in self._waited:
            raise RaceError(f"{where}: there is no fence between what thread {thread} waited for and this")


class TensorMemory:
    """That of each block of a launch that has asked for some."""

    def __init__(self) -> None:
        self.blocks: dict[int, BlockTensorMemory] = {}

    def of(self, block: int) -> BlockTensorMemory:
        return self.blocks.setdefault(block, BlockTensorMemory())

    def fence(self, blocks: Array, threads: Array, after: bool) -> None:
        for block, thread in zip(blocks.tolist(), threads.tolist(), strict=True):
            self.of(block).fence(thread, after)

    def waited(self, blocks: Array, threads: Array) -> None:
        if not self.blocks:
            return
        for block, thread in zip(blocks.tolist(), threads.tolist(), strict=True):
            if block in self.blocks:
                self.blocks[block].waited(thread)

    def released(self, block: int, thread: int) -> Callable[[], None] | None:
        return self.blocks[block].released(thread) if block in self.blocks else None

    def finish(self, name: str) -> None:
        """The blocks have ended: each has freed what it has allocated."""
        kept = [block for block, memory in self.blocks.items() if not memory.is_free]
        self.blocks = {}
        if kept:
            raise KernelError(f"kernel @{name}: block {kept[0]} ends with tensor memory that it has not freed")
