"""Lanes: the iterations or threads that execute an op together, each SSA value an array with one element per lane."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.interpreter_memory import Access, Buffer
from mlirt.dialects.kernel.simt import MAX_THREADS, WARP

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    from mlirt.dialects.kernel.interpreter_tensor_copies import MappedTensor

    Value: TypeAlias = Array | Buffer | MappedTensor


class Epochs:
    """The epoch of each block, of which a barrier starts a new one, and the phase of each warp, as its barriers do."""

    def __init__(self, blocks: int) -> None:
        import numpy as np

        self._of = np.zeros(blocks, np.int64)
        self._newest = 0
        self._phases: Array | None = None  # of warps of blocks, once there are any

    def of(self, blocks: Array) -> Array:
        return self._of[blocks]

    def start(self, blocks: Array) -> None:
        """These blocks have passed a barrier."""
        self._newest += 1
        self._of[blocks] = self._newest

    def now(self, access: Access) -> Access:
        """An access as one of the present epochs and phases."""
        return replace(access, epoch=self.of(access.block), phase=self.phases(access.block, access.thread))

    def phases(self, blocks: Array, threads: Array) -> Array:
        """How many barriers of their warps these threads have passed."""
        import numpy as np

        return np.zeros(len(blocks), np.int64) if self._phases is None else self._phases[blocks, threads // WARP]

    def start_phases(self, blocks: Array, threads: Array) -> None:
        """The warps of these threads have passed a barrier of their own."""
        import numpy as np

        if self._phases is None:
            self._phases = np.zeros((len(self._of), MAX_THREADS // WARP), np.int64)
        first = threads % WARP == 0
        self._phases[blocks[first], threads[first] // WARP] += 1


class Lanes:
    """`count` lanes and the SSA values they know.

    A scalar is an array of shape `(count,)`, or `()` where all lanes have the same; a vector is `(count, n)` or
    `(1, n)`. `origin` maps each lane to the lane of `parent` that it was split from; `active` tells which
    lanes execute now.
    """

    def __init__(
        self,
        block: Array,
        thread: Array,
        epochs: Epochs,
        *,
        depth: int,
        parent: Lanes | None = None,
        origin: Array | None = None,
    ) -> None:
        import numpy as np

        self.count = len(block)
        self.block, self.thread, self.epochs, self.depth = block, thread, epochs, depth
        self.parent, self.origin = parent, origin
        self.active = np.ones(self.count, bool)
        self._values: dict[SSAValue, Value] = {}

    def split(self, origin: Array) -> Lanes:
        """Lanes that do a part of the work of these, in the same blocks and threads."""
        return Lanes(self.block[origin], self.thread[origin], self.epochs, depth=self.depth, parent=self, origin=origin)

    def __setitem__(self, name: SSAValue, value: Value) -> None:
        self._values[name] = value

    def get(self, name: SSAValue) -> Value:
        """The value of an SSA name; one of the parent is copied to the lanes that came from each of its lanes."""
        if name in self._values:
            return self._values[name]
        assert self.parent is not None, f"{name} has no value"
        value = self.parent.get(name)
        if is_array(value) and is_laned(value, name.type, self.parent.count):
            value = value[self.origin]
        self._values[name] = value
        return value

    def buffer(self, name: SSAValue) -> Buffer:
        value = self.get(name)
        assert isinstance(value, Buffer)
        return value

    def array(self, name: SSAValue) -> Array:
        """A scalar or vector as it is kept: possibly one element for all lanes."""
        value = self.get(name)
        assert is_array(value)
        return value

    def per_lane(self, name: SSAValue) -> Array:
        """A scalar of each lane."""
        import numpy as np

        return np.broadcast_to(self.array(name), (self.count,))

    def access(self, index: Array, lanes: Array, where: str) -> Access:
        """The access of `lanes` to `index`, one element for each of these."""
        block, thread = self.block[lanes], self.thread[lanes]
        return Access(where, index, block, thread, self.epochs.of(block), self.epochs.phases(block, thread))

    @contextmanager
    def only(self, active: Array) -> Generator[None]:
        """Let only these lanes execute."""
        before, self.active = self.active, active
        try:
            yield
        finally:
            self.active = before


def is_array(value: Value) -> TypeGuard[Array]:
    """Whether a value is numbers."""
    import numpy as np

    return isinstance(value, np.ndarray | np.generic)


def is_laned(value: Array, type_: Attribute, lanes: int) -> bool:
    """Whether an array has one entry per lane, and not one for all."""
    return value.ndim == (2 if isinstance(type_, VectorType) else 1) and value.shape[0] == lanes


def merge(condition: Array, new: Array, old: Array) -> Array:
    """`new` in the lanes where the condition holds, `old` in the others."""
    import numpy as np

    if condition.all():
        return new
    wide = condition[:, None] if max(new.ndim, old.ndim) == 2 else condition
    return np.where(wide, new, old)
