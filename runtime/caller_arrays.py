"""The arrays that a caller gives to a run on the CPU, and gets from it: where kernels read and write.

Kernels use an array of the caller where it lies. Small ones are copied instead: that is quicker than to find out their
address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from mlirt.runtime.cpu_table import Patch
from mlirt.runtime.guarded_memory import GuardedOutput
from mlirt.runtime.host_memory import ALIGNMENT, OutputMemory, address_of, aligned_empty

Key = TypeVar("Key", int, str)
_SMALL_BYTES = 2048
_NOTHING: np.ndarray = np.empty(0)


def stage(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> np.ndarray | None:
    """Memory for copies of a small array; None for a larger one."""
    count = dtype.itemsize
    for dim in shape:
        count *= dim
    return aligned_empty(shape, dtype) if count <= _SMALL_BYTES else None


class InputPlace:
    """Where kernels find one input."""

    def __init__(self, patch: Patch, align: int, staged: np.ndarray | None) -> None:
        self._patch, self._align = patch, align
        self.staged = staged
        self._own = 0
        if staged is not None:
            self._own = address_of(staged)
            patch.point_at(self._own)
        self.is_lent = False
        """Whether kernels read memory of the caller's in the place of the copy."""

    @property
    def nbytes(self) -> int:
        """What it holds besides the caller's array."""
        return self._patch.nbytes + (0 if self.staged is None else self.staged.nbytes)

    def lend(self, address: int) -> bool:
        """Let kernels read what lies at an address, and is as an array that fits; False where it is not aligned."""
        if address % self._align:
            return False
        self._patch.point_at(address)
        self.is_lent = self.staged is not None
        return True

    def give_back(self) -> None:
        """Let kernels read the copy again."""
        self._patch.point_at(self._own)
        self.is_lent = False

    def take(self, array: np.ndarray, address: int | None = None) -> np.ndarray:
        """Let kernels read an array, whose address may be known; the one that they read is returned."""
        if self.staged is not None:
            if self.is_lent:
                self.give_back()
            self.staged[...] = array
            return self.staged
        address = address or address_of(array)
        if address % self._align:
            array = aligned_copy(array, self._align)
            address = address_of(array)
        self._patch.point_at(address)
        return array


class OutputPlace:
    """Where one output is written: by kernels where there is a patch, else when the outputs are fetched."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        memory: OutputMemory | GuardedOutput,
        patch: Patch | None,
        align: int,
        staged: np.ndarray | None,
    ) -> None:
        self.memory, self._patch, self._align = memory, patch, align
        self.staged = staged
        self.shape, self.dtype = shape, dtype
        self.array = _NOTHING
        self.is_lent = False
        """Whether kernels write memory of the caller's in the place of the copy."""
        if staged is not None:
            self.array = staged
            if patch is not None:
                patch.point_at(address_of(staged))

    @property
    def nbytes(self) -> int:
        """What it holds besides the array for the caller."""
        return (0 if self._patch is None else self._patch.nbytes) + (0 if self.staged is None else self.staged.nbytes)

    @property
    def is_written_by_kernels(self) -> bool:
        return self._patch is not None

    def begin(self, given: np.ndarray | None, address: int | None = None) -> None:
        """Choose the array: one that the caller gives where it can be written as it is, else a fresh one."""
        if self.staged is not None:
            if self.is_lent:
                self._give_back(self.staged)
            return
        if given is not None and self._takes(given, address := address or address_of(given)):
            self.array = given
        else:
            self.array = _NOTHING  # where nobody else holds the last array either, its memory is used again
            self.array = self.memory.array()
            address = self.memory.address
        if self._patch is not None:
            self._patch.point_at(address)

    def lend(self, address: int) -> bool:
        """Let kernels write what lies at an address, and is as an array that fits; False where they cannot."""
        patch, align = self._patch, max(self._align, self.dtype.itemsize)
        if patch is None or address % align or not isinstance(self.memory, OutputMemory):
            return False
        patch.point_at(address)
        self.is_lent = self.staged is not None
        return True

    def _give_back(self, staged: np.ndarray) -> None:
        assert self._patch is not None, "only what kernels write is lent"
        self._patch.point_at(address_of(staged))
        self.is_lent = False

    def fits(self, given: np.ndarray) -> bool:
        """Whether an array of the caller may be this output."""
        is_array = isinstance(given, np.ndarray)  # pyright: ignore[reportUnnecessaryIsInstance]
        return is_array and given.dtype == self.dtype and given.shape == self.shape and given.flags.writeable

    def _takes(self, given: np.ndarray, address: int) -> bool:
        align = max(self._align, given.dtype.itemsize) if self._patch is not None else 1
        return isinstance(self.memory, OutputMemory) and given.flags.c_contiguous and address % align == 0


def separate(given: Mapping[Key, np.ndarray], inputs: Sequence[np.ndarray]) -> Mapping[Key, np.ndarray]:
    """The arrays for outputs that share no memory with inputs or with one another: others must not be written early."""
    found: dict[Key, np.ndarray] = {}
    for number, array in given.items():
        others = (*inputs, *(one for other, one in given.items() if other != number))
        if not any(np.may_share_memory(array, other) for other in others):
            found[number] = array
    return found


def aligned_copy(array: np.ndarray, align: int) -> np.ndarray:
    """A copy whose address is a multiple of `align`."""
    copy = aligned_empty(array.shape, array.dtype, max(align, ALIGNMENT))
    copy[...] = array
    return copy
