"""Counts the bytes that are copied to where kernels read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirt.aligned_memory import AlignedMemory

Array = np.ndarray[Any, np.dtype[Any]]


def counted_copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the size of each copy from now on."""
    sizes, copy_of = list[int](), AlignedMemory.copy_of

    def counted(memory: AlignedMemory, array: Array) -> Array:
        sizes.append(array.nbytes)
        return copy_of(memory, array)

    monkeypatch.setattr(AlignedMemory, "copy_of", counted)
    return sizes
