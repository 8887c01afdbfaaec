"""An input of a run as several arrays, one behind the other along the first axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlirt.errors import InvalidInputError


class JoinedArrays:
    """What `numpy.concatenate` makes of arrays, without its copy where a run does without it.

    A GPU copies each array from where it lies, pinned memory (`engine.host_array`) at once; a CPU gets one array.
    """

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        """`parts`: at least one; InvalidInputError where types differ, or lengths of axes behind the first one."""
        if not parts:
            raise InvalidInputError("expected at least one array to join, got none")
        first = parts[0]
        for number, part in enumerate(parts):
            if not part.ndim or part.dtype != first.dtype or part.shape[1:] != first.shape[1:]:
                raise InvalidInputError(
                    f"expected arrays of {first.dtype} and shape [rows, {str(list(first.shape[1:]))[1:-1]}] to join, "
                    f"got {part.dtype} and {list(part.shape)} (number {number})"
                )
        self.parts = [np.ascontiguousarray(part) for part in parts]
        self.dtype = first.dtype
        self.shape: tuple[int, ...] = (sum(len(part) for part in parts), *first.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("arrays that are joined are copied")
        return np.concatenate(self.parts).astype(dtype or self.dtype, copy=False)

    def placed(self) -> Iterator[tuple[int, np.ndarray]]:
        """Each part that has elements, and the byte of the whole at which it begins."""
        at = 0
        for part in self.parts:
            if part.nbytes:
                yield at, part
            at += part.nbytes
