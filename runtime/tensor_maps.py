"""Encodes the descriptions of tensors from which a device copies boxes to shared memory by itself (TMA)."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_int, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from typing import Any

from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.record_kinds import FLAG, in_range, numbers, one_of
from mlirt.runtime.record_schema import Fault, Given, Kind, Scope, stored

_ALIGNMENT = 64
# As the CUDA driver numbers them.
_ELEMENTS = {
    "uint8": 0,
    "int8": 0,
    "bool": 0,
    "uint16": 1,
    "uint32": 2,
    "int32": 3,
    "uint64": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
ROUNDED = "float32"
"""The elements that copies may round to TF32."""
_TF32 = 11
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_L2_256_BYTES = 3
ELEMENTS = tuple(_ELEMENTS)
SWIZZLES = tuple(_SWIZZLES)
_MAX_RANK = 5
_CORNER = numbers(-(1 << 15), 1 << 15, _MAX_RANK)


def _no_element(name: str) -> str:
    return f"{name!r} is no element that a device can copy"


def _swizzle(value: Any, scope: Scope, given: Given) -> int:
    if in_range(value, 0, max(SWIZZLES)) not in SWIZZLES:
        raise Fault(f"expected one of {SWIZZLES}, got {value}")
    return value


class EncodedMap(ctypes.Structure):
    """What a kernel is passed: 128 bytes that only the device understands."""

    _fields_ = [("words", c_uint64 * 16)]


@dataclass(frozen=True)
class MapLayout:
    """A tensor in memory, dimensions outermost first, `steps` in bytes, and what a copy brings of it.

    With `stride` a window walks over it: from `lower` to the sizes plus `upper`, spatial dimensions outermost first.
    With `tf32` copies round float32 to the nearest number with 10 bits of mantissa.
    """

    element: str = field(metadata=stored(one_of(*ELEMENTS, fault=_no_element)))
    """NumPy's name of the element type."""
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...] = field(metadata=stored(numbers(1, 1024, _MAX_RANK), default=()))
    """What a copy brings: a length for each dimension, or, of a window, pixels and channels."""
    swizzle: int = field(metadata=stored(Kind(_swizzle, "0, 32, 64 or 128"), default=0))
    """In groups of how many bytes the copy is permuted in shared memory."""
    lower: tuple[int, ...] = field(default=(), metadata=stored(_CORNER, default=()))
    """Where a window begins."""
    upper: tuple[int, ...] = field(default=(), metadata=stored(_CORNER, default=()))
    """Where it ends, beyond the sizes."""
    stride: tuple[int, ...] = field(default=(), metadata=stored(numbers(1, 8, _MAX_RANK), default=()))
    """The steps of a window, which walks over the dimensions but the first and the last."""
    tf32: bool = field(default=False, metadata=stored(FLAG, default=False))
    """Copies round float32 to 10 bits of mantissa."""

    def check(self, scope: Scope) -> None:
        """Only float32 is rounded."""
        if self.tf32 and self.element != ROUNDED:
            raise Fault(f"only {ROUNDED} is rounded, not {self.element}", ".tf32")

    def extent(self) -> int:
        """Bytes from the first element to the end of the last one."""
        width = numpy_dtype(self.element).itemsize
        return sum((size - 1) * step for size, step in zip(self.sizes, self.steps, strict=True)) + width


def driver_element(layout: MapLayout) -> int:
    """The number that the driver has for the elements."""
    return _TF32 if layout.tf32 else _ELEMENTS[layout.element]


def driver_swizzle(layout: MapLayout) -> int:
    """The number that it has for the permutation in shared memory."""
    return _SWIZZLES[layout.swizzle]


def encode(library: Any, layout: MapLayout, address: int) -> tuple[str, int, EncodedMap]:
    """The call, its status and the map of a tensor at a device address."""
    memory = (ctypes.c_uint8 * (ctypes.sizeof(EncodedMap) + _ALIGNMENT))()
    encoded = EncodedMap.from_buffer(memory, -ctypes.addressof(memory) % _ALIGNMENT)
    rank = len(layout.sizes)
    sizes = _numbers(c_uint64, layout.sizes)
    steps = _numbers(c_uint64, layout.steps[:-1])
    head = [ctypes.byref(encoded), driver_element(layout), rank, address, sizes, steps]
    tail = [0, driver_swizzle(layout), _L2_256_BYTES, 0]
    if layout.stride:
        pixels, channels = layout.box
        corners = [_numbers(c_int, layout.lower), _numbers(c_int, layout.upper)]
        strides = _numbers(c_uint32, (1, *layout.stride, 1))
        call = "cuTensorMapEncodeIm2col"
        status = library.cuTensorMapEncodeIm2col(*head, *corners, channels, pixels, strides, *tail)
    else:
        ones = _numbers(c_uint32, (1,) * rank)
        call = "cuTensorMapEncodeTiled"
        status = library.cuTensorMapEncodeTiled(*head, _numbers(c_uint32, layout.box), ones, *tail)
    return call, status, encoded


def _numbers(kind: Any, values: Sequence[int]) -> Any:
    """An array for the driver, which has the innermost dimension first."""
    return (kind * max(len(values), 1))(*reversed(values))


def declare(library: Any) -> None:
    """Give the entries their argument types, where the driver has them (CUDA 12 on)."""
    anything, integers = c_void_p, POINTER(c_uint32)
    head = [anything, c_int, c_uint32, c_uint64, POINTER(c_uint64), POINTER(c_uint64)]
    tail = [c_int, c_int, c_int, c_int]
    corners = [POINTER(c_int), POINTER(c_int)]
    signatures = {
        "cuTensorMapEncodeTiled": [*head, integers, integers, *tail],
        "cuTensorMapEncodeIm2col": [*head, *corners, c_uint32, c_uint32, integers, *tail],
    }
    for name, types in signatures.items():
        function = getattr(library, name, None)
        if function is not None:
            function.argtypes, function.restype = types, c_int
