"""8-bit floats in NumPy: 4 bits of exponent, 3 of mantissa, no infinity; what is too large becomes the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import Float8E4M3FNType

from mlirt.dialects.tensor_types import numpy_dtype

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

MAX_FLOAT8 = 448.0


def rounded(numbers: Array | float) -> Array:
    """The nearest 8-bit float of each number, ties to the even one; not-a-number stays so."""
    import numpy as np

    wide = np.asarray(numbers, np.float32)
    return np.clip(wide, -MAX_FLOAT8, MAX_FLOAT8).astype(numpy_dtype(Float8E4M3FNType()))
