"""Tensors of other libraries: taken where they lie, kept as long as they are read, refused by their names."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.errors import InvalidInputError
from mlirt.runtime.tensor_exchange import exchanged, host_array, is_exchangeable, is_on_device


class Lent:
    """An array behind DLPack alone."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array = array
        self.device = device

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


@given(
    st.lists(st.integers(0, 4), max_size=4),
    st.sampled_from(["float32", "float64", "float16", "int8", "uint16", "int32", "int64", "bool"]),
    st.booleans(),
)
def test_exchange_copies_nothing(shape: list[int], dtype: str, transposed: bool) -> None:
    array = np.arange(int(np.prod(shape)), dtype=np.float64).astype(dtype).reshape(shape)
    array = array.T if transposed else array
    found = host_array("input 'x'", Lent(array))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    if array.size:
        assert found.ctypes.data == array.ctypes.data
        assert found.strides == array.strides or 1 in shape


def test_memory_is_kept_and_given_back() -> None:
    class Owned(np.ndarray):
        """An array that can be watched."""

    array = np.arange(6, dtype=np.float32).view(Owned)
    watched = weakref.ref(array)
    found: np.ndarray | None = host_array("input 'x'", Lent(array))
    del array
    gc.collect()
    assert watched() is not None
    assert found is not None
    part = found[2:]
    found = None
    gc.collect()
    np.testing.assert_array_equal(part, [2, 3, 4, 5])
    del part
    gc.collect()
    assert watched() is None


def test_memory_of_a_gpu_is_no_array() -> None:
    value = Lent(np.zeros(3, np.float32), device=2)
    assert is_on_device(value)
    with pytest.raises(InvalidInputError, match=r"input 'x': the tensor lies on a GPU"):
        host_array("input 'x'", value)


def test_what_a_library_does_not_lend_is_told() -> None:
    class Bound:
        def __dlpack__(self) -> object:
            raise BufferError("Can't export tensors that require gradient")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    with pytest.raises(InvalidInputError, match=r"input 'x'.*require gradient"):
        host_array("input 'x'", Bound())


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"input 'x'.*elements"):
        host_array("input 'x'", Lent(np.zeros(2, np.complex64)))


def test_cuda_array_interface() -> None:
    class Device:
        __cuda_array_interface__ = {  # noqa: RUF012
            "typestr": "<f4",
            "shape": (2, 3),
            "data": (4096, False),
            "strides": (24, 8),
            "version": 3,
        }

    found = exchanged("input 'x'", Device(), 0)
    assert is_exchangeable(Device())
    assert is_on_device(Device())
    assert (found.address, found.dtype, found.shape, found.is_dense) == (4096, "float32", (2, 3), False)
