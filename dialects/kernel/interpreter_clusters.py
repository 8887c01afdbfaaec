"""Memory of other blocks of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.interpreter_lanes import Epochs
from mlirt.dialects.kernel.interpreter_memory import Access, RaceError, SharedBuffer, UninitializedReadError

if TYPE_CHECKING:
    import numpy as np

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
