"""The memory of interpreted kernels: flat buffers that notice bad indices, reads of nothing and races.

Each element remembers who wrote it last and who has read it, as (block, thread, epoch, phase). Two accesses of one
element, one of them a write, race when they come from different blocks, or from different threads of a block within one
epoch; a barrier starts the next epoch of its block. Threads of one warp are ordered by its phases as well, of which a
barrier of the warp starts the next one.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirt.dialects.kernel.simt import WARP
from mlirt.errors import CompileError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_NOBODY = -1
_SEVERAL = -2
_SEVERAL_OF_WARP = -3  # of warp 0; less the number of another one


class KernelError(CompileError):
    """A kernel did something that is not allowed, on some input."""


class OutOfBoundsError(KernelError):
    """An access outside of its buffer."""


class UninitializedReadError(KernelError):
    """A read of an element that nobody has written."""


class RaceError(KernelError):
    """Two unordered accesses of one element, at least one of them a write."""


class DivergenceError(KernelError):
    """Not all threads of a block reached a barrier together."""


class NeverSentError(KernelError):
    """A thread waits for a word that nobody has sent, or that has been overwritten."""


@dataclass(frozen=True)
class Access:
    """One op's accesses: for each active lane its index, its block, its thread, and the epoch that its block is in, and
    the phase of its warp.
    """

    where: str
    index: Array
    block: Array
    thread: Array
    epoch: Array
    phase: Array


class Buffer:
    """Elements in a row. `base` is where index zero lies, so that a halo can lie before it."""

    def __init__(self, name: str, data: Array, *, initialized: bool, base: int = 0) -> None:
        import numpy as np

        self.name, self.data, self.base, self.tracked = name, data, base, False
        self.initialized = None if initialized else np.zeros(data.size, bool)

    def track(self) -> None:
        """From now on, look for races."""
        import numpy as np

        self.tracked = True
        self.writer = np.full((4, self.data.size), _NOBODY, np.int64)
        self.reader = np.full((4, self.data.size), _NOBODY, np.int64)

    def moved(self, name: str, base: int) -> Buffer:
        """The same memory by another name, with index zero at `base`."""
        other = copy(self)
        other.name, other.base = name, base
        return other

    def forget(self) -> None:
        """Forget all accesses so far: what follows is ordered after them."""
        if self.tracked:
            self.writer.fill(_NOBODY)
            self.reader.fill(_NOBODY)

    def read(self, access: Access) -> Array:
        """The elements at the indices; raises a `KernelError`."""
        at = self.locate(access)
        if self.initialized is not None and not self.initialized[at].all():
            lane = int((~self.initialized[at]).argmax())
            element = self._element(access, lane)
            raise UninitializedReadError(f"{access.where} reads {element}, which nobody has written")
        if self.tracked:
            self._refuse_other(access, self.writer[:, at], "reads", "wrote")
            self._note_readers(access, at)
        return self.data[at]

    def write(self, access: Access, values: Array) -> None:
        """Set the elements at the indices; raises a `KernelError`."""
        at = self.locate(access)
        if self.tracked:
            self._note_writers(access, at)
        self.data[at] = values
        if self.initialized is not None:
            self.initialized[at] = True

    def begin_write(self, access: Access) -> None:
        """Let the elements be in the act of being written: nobody may touch them until `finish_write`."""
        at = self.locate(access)
        self._note_writers(access, at)
        assert self.initialized is not None
        self.initialized[at] = False

    def finish_write(self, access: Access, values: Array) -> None:
        """What `begin_write` announced has happened now."""
        at = self.locate(access)
        self.data[at] = values
        self.writer[2:, at] = access.epoch, access.phase
        assert self.initialized is not None
        self.initialized[at] = True

    def locate(self, access: Access) -> Array:
        """Where the indices lie in `data`; raises `OutOfBoundsError`."""
        at = access.index + self.base
        self._refuse_outside(access, (at < 0) | (at >= self.data.size), self.data.size - self.base)
        return at

    def _refuse_outside(self, access: Access, outside: Array, extent: int) -> None:
        if outside.any():
            lane = int(outside.argmax())
            fault = f"{self._element(access, lane)} is out of bounds: the extent is {extent}"
            raise OutOfBoundsError(f"{access.where}: {fault}{_who(access, lane)}")

    def _note_writers(self, access: Access, at: Array) -> None:
        import numpy as np

        self._refuse_other(access, self.writer[:, at], "writes", "also writes")
        self._refuse_other(access, self.reader[:, at], "writes", "reads")
        order = np.argsort(at, kind="stable")
        twice = np.flatnonzero(np.diff(at[order]) == 0)
        if twice.size:
            one, other = int(order[twice[0]]), int(order[twice[0] + 1])
            element = self._element(access, one)
            raise RaceError(f"{access.where}: {element} is written{_who(access, one)} and{_who(access, other)} at once")
        self.writer[:, at] = access.block, access.thread, access.epoch, access.phase

    def _refuse_other(self, access: Access, before: Array, verb: str, earlier: str) -> None:
        block, thread, epoch, phase = before
        other_block = (block != _NOBODY) & (block != access.block)
        other_thread = (block == access.block) & (epoch == access.epoch) & (thread != access.thread)
        other_thread &= (_warp_of(thread) != access.thread // WARP) | (phase == access.phase)
        bad = other_block | other_thread
        if bad.any():
            lane = int(bad.argmax())
            several = block[lane] == _SEVERAL or thread[lane] <= _SEVERAL
            culprit = "several others" if several else f"block {block[lane]} thread {thread[lane]}"
            order = "blocks are never ordered" if other_block[lane] else "there is no barrier between"
            what = f"{verb} {self._element(access, lane)}{_who(access, lane)}"
            raise RaceError(f"{access.where} {what}, which {culprit} {earlier}: {order}")

    def _note_readers(self, access: Access, at: Array) -> None:
        """Merge the new readers with the ones known; `_SEVERAL` stands for more than one block or thread.

        Readers of the same warp in an earlier phase are forgotten: who may write behind a reader of this phase may do
        so behind them.
        """
        import numpy as np

        block, thread, epoch, phase = self.reader[:, at]
        same_block, same_epoch = block == access.block, epoch == access.epoch
        warp = access.thread // WARP
        new_block = np.where((block == _NOBODY) | same_block, access.block, _SEVERAL)
        other, same_warp = same_block & same_epoch & (thread != access.thread), _warp_of(thread) == warp
        several, of_warp = other & ~same_warp, other & same_warp & (phase == access.phase)
        self.reader[:, at] = new_block, access.thread, access.epoch, access.phase
        # Of several lanes that read one element now, the last one is on record: the others see that it is not them.
        kept_block, kept_thread = self.reader[:2, at]
        lost_block = (kept_block != _SEVERAL) & (kept_block != access.block)
        lost_thread, kept_warp = (kept_thread != access.thread) & ~lost_block, kept_thread // WARP == warp
        one_warp = of_warp | (lost_thread & kept_warp)
        self.reader[0, at[lost_block]] = _SEVERAL
        self.reader[1, at[one_warp]] = _SEVERAL_OF_WARP - warp[one_warp]
        self.reader[1, at[several | (lost_thread & ~kept_warp)]] = _SEVERAL

    def _element(self, access: Access, lane: int) -> str:
        return f"%{self.name}[{access.index[lane]}]"


def _warp_of(threads: Array) -> Array:
    """The warp of a thread, or of several of one warp; negative where there is none."""
    import numpy as np

    return np.where(threads >= 0, threads // WARP, _SEVERAL_OF_WARP - threads)


def _who(access: Access, lane: int) -> str:
    return f" (by block {access.block[lane]} thread {access.thread[lane]})"


class SharedBuffer(Buffer):
    """Shared memory of the blocks that run together: each has its own `extent` elements."""

    def __init__(self, name: str, extent: int, dtype: np.dtype[Any], first_block: int, blocks: int) -> None:
        import numpy as np

        super().__init__(name, np.zeros(extent * blocks, dtype), initialized=False)
        self.extent, self.first_block = extent, first_block
        self.unfenced = np.zeros(extent * blocks, bool)
        self.readers: Array | None = None
        self.track()

    def write(self, access: Access, values: Array) -> None:
        at = self.locate(access)
        if self.readers is not None and self.readers[at].any():
            raise RaceError(f"{access.where}: writes to %{self.name} while a matrix unit may still read it")
        super().write(access, values)
        self.unfenced[at] = True

    def locate(self, access: Access) -> Array:
        self._refuse_outside(access, (access.index < 0) | (access.index >= self.extent), self.extent)
        return access.index + (access.block - self.first_block) * self.extent

    def retire(self, where: str, epochs: Array) -> None:
        """Forget the contents; raises `RaceError` if a block has used the memory in its current epoch."""
        import numpy as np

        now = np.repeat(epochs, self.extent)
        used = (self.writer[0] != _NOBODY) & (self.writer[2] == now)
        used |= (self.reader[0] != _NOBODY) & (self.reader[2] == now)
        if used.any():
            block, index = divmod(int(used.argmax()), self.extent)
            who = f"block {block + self.first_block}"
            raise RaceError(f"{where}: %{self.name}[{index}] of {who} has been used since the last barrier")
        assert self.initialized is not None
        self.initialized[:] = False
