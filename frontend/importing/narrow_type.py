"""Element types of less than a byte and 8-bit floats: what a network without them stores their numbers as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class NarrowType:
    """An element type that ml_dtypes calls `name` and that is stored as NumPy's `storage`."""

    name: str
    storage: str
    bits: int

    @property
    def is_integer(self) -> bool:
        return self.name.lstrip("u").startswith("int")

    @property
    def is_kept(self) -> bool:
        """Whether a network has the type itself."""
        return self.storage == self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.name))

    @property
    def is_infinitely_scaled(self) -> bool:
        """Whether numbers are kept as floats, as integers whose scale is infinite would lose all of them."""
        return self is INFINITELY_SCALED

    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer."""
        return (
            (0, 2**self.bits - 1) if self.name.startswith("u") else (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1)
        )

    def stored(self, numbers: Array) -> Array:
        """Numbers of this type as they are stored."""
        if self.is_kept:
            return numbers
        return numbers.astype(self.storage) if self.is_integer else numbers.view(np.uint8)

    def numbers(self, stored: Array) -> Array:
        """Stored numbers in this type again."""
        return (
            stored.astype(self.dtype)
            if self.is_integer or self.is_kept
            else np.ascontiguousarray(stored).view(self.dtype)
        )


INFINITELY_SCALED = NarrowType("integers with an infinite scale", "float32", 32)
"""What calibration makes of a tensor with -inf in it, such as the mask of an attention."""
