"""Where the arena of a program lies on the CPU: at planned offsets of one block, or each buffer between guard pages."""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from mlirt.runtime.guarded_memory import GuardedBlock, Side
from mlirt.runtime.host_memory import HostBlock
from mlirt.runtime.lent_memory import LentBlock
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.shape_binding import ShapeBinding

_UNWRITTEN = 0xFF


class Arena(Protocol):
    """The memory of the arena buffers of one program; `root` is the number of a buffer that owns its bytes."""

    def addresses(self) -> np.ndarray:
        """The address of each buffer's first byte, as int64; any number for those that lie elsewhere."""
        ...

    @property
    def held_bytes(self) -> int:
        """The memory that belongs to this program alone."""
        ...

    @property
    def rewritten(self) -> np.ndarray:
        """Which borders launches must write in each run."""
        ...

    def moved(self) -> int:
        """By how many bytes all buffers lie further behind than at the last call, or than at first."""
        ...

    def bytes_at(self, root: int, offset: int, size: int) -> np.ndarray:
        """Part of a buffer as a writable array."""
        ...

    def restore_halos(self) -> None:
        """Write the borders that launches do not, which another program may have written over."""
        ...

    def check(self) -> None:
        """Raise `PlanError` where a kernel is found to have written outside of a buffer."""
        ...


class PlannedArena:
    """Buffers at the offsets that the memory planner chose, in the block that programs of one context share.

    `block` gives that one, which another takes the place of where a program needs a larger one.
    """

    def __init__(self, block: Callable[[], HostBlock | LentBlock], binding: ShapeBinding) -> None:
        self._block, self._offsets, self._halos = block, binding.offset_array, binding.halos
        self._start = block().address
        self.rewritten = binding.rewritten

    def addresses(self) -> np.ndarray:
        return self._start + self._offsets

    @property
    def held_bytes(self) -> int:
        return self._offsets.nbytes

    def moved(self) -> int:
        before, self._start = self._start, self._block().address
        return self._start - before

    def bytes_at(self, root: int, offset: int, size: int) -> np.ndarray:
        return self._block().bytes_at(int(self._offsets[root]) + offset, size)

    def restore_halos(self) -> None:
        block = self._block()
        for halo in self._halos:
            block.fill(*halo)

    def check(self) -> None:
        """Nothing shows it."""


class GuardedArena:
    """A block of its own for each buffer, between guard pages: buffers share no memory, whenever they are alive.

    Launches write every border that they can, as if other buffers shared all memory.
    """

    def __init__(self, manifest: Manifest, binding: ShapeBinding, side: Side) -> None:
        self._count = len(manifest.buffers)
        self._blocks: Mapping[int, GuardedBlock] = {
            root: GuardedBlock(binding.sizes[root], side) for root in binding.offsets
        }
        self.rewritten = np.ones(len(binding.borders.buffers), bool)
        rewritten = {*binding.borders.buffers}
        self._fills = {
            root: _UNWRITTEN if root in rewritten else buffer.fill
            for root in self._blocks
            if (buffer := manifest.buffers[root]).halo is not None
        }

    def addresses(self) -> np.ndarray:
        found = np.zeros(self._count, np.int64)
        for root, block in self._blocks.items():
            found[root] = block.address
        return found

    @property
    def held_bytes(self) -> int:
        return sum(block.size for block in self._blocks.values())

    def moved(self) -> int:
        return 0

    def bytes_at(self, root: int, offset: int, size: int) -> np.ndarray:
        return self._blocks[root].bytes_at(offset, size)

    def restore_halos(self) -> None:
        for root, byte in self._fills.items():
            self._blocks[root].fill(0, self._blocks[root].size, byte)

    def check(self) -> None:
        for root, block in self._blocks.items():
            block.check(f"buffer {root}")
