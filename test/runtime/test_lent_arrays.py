"""Tensors of other libraries as arrays, the shortest way; PyTorch's are tested in test/builder/from_torch."""

from __future__ import annotations

import numpy as np
import pytest
from lent import Lent

from mlirt.runtime.lent_arrays import lent_array


def test_memory_is_the_same() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = lent_array(Lent(array))
    assert found is not None
    assert found.ctypes.data == array.ctypes.data
    assert found.flags.writeable


@pytest.mark.parametrize("value", [None, 3, [1.0], "x", Lent(np.array(["x"]))], ids=lambda value: type(value).__name__)
def test_what_cannot_be_lent_is_none(value: object) -> None:
    assert lent_array(value) is None
