"""The descriptors that cuDNN's graphs are made of: attributes by name, with the types that the library wants."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import byref, c_bool, c_float, c_int, c_int64, c_void_p
from enum import IntEnum
from typing import Any, Self

from mlirt.errors import MlirtError

Call = Callable[..., None]
"""Calls an entry of the library by its name; raises `PlanError` unless it succeeds."""


class Kind(IntEnum):
    """What a descriptor describes, as the library numbers it."""

    POINTWISE = 0
    CONVOLUTION = 1
    ENGINE = 2
    CONFIG = 3
    HEURISTICS = 4
    PLAN = 5
    CONVOLVE = 10
    APPLY = 13
    GRAPH = 15
    POINTERS = 16
    TENSOR = 17


class Field(IntEnum):
    """Attributes of descriptors, as the library numbers them."""

    POINTWISE_MODE = 0
    POINTWISE_PRECISION = 1
    POINTWISE_NAN = 2
    CONVOLUTION_SUMS = 100
    CONVOLUTION_MODE = 101
    CONVOLUTION_DILATION = 102
    CONVOLUTION_STRIDE = 103
    CONVOLUTION_PADDING_AFTER = 104
    CONVOLUTION_PADDING_BEFORE = 105
    CONVOLUTION_RANK = 106
    HEURISTICS_MODE = 200
    HEURISTICS_GRAPH = 201
    HEURISTICS_RESULTS = 202
    CONFIG_ENGINE = 300
    PLAN_HANDLE = 400
    PLAN_CONFIG = 401
    PLAN_WORKSPACE = 402
    CONVOLVE_FACTOR = 700
    CONVOLVE_OLD_FACTOR = 701
    CONVOLVE_WINDOW = 702
    CONVOLVE_KERNEL = 703
    CONVOLVE_INPUT = 704
    CONVOLVE_RESULT = 705
    APPLY_POINTWISE = 750
    APPLY_INPUT = 751
    APPLY_OTHER = 752
    APPLY_RESULT = 753
    GRAPH_HANDLE = 800
    GRAPH_OPS = 801
    TENSOR_ALIGNMENT = 900
    TENSOR_ELEMENT = 901
    TENSOR_SIZES = 902
    TENSOR_STRIDES = 903
    TENSOR_ID = 906
    TENSOR_IS_VIRTUAL = 907
    POINTERS_IDS = 1000
    POINTERS_ADDRESSES = 1001
    POINTERS_WORKSPACE = 1003
    ENGINE_NOTES = 1303


_HANDLE, _ELEMENT, _FLAG, _NUMBER, _FACTOR = (0, c_void_p), (1, c_int), (2, c_bool), (3, c_int64), (4, c_float)
_ADDRESS, _DIRECTION, _HEURISTIC, _NOTE = (6, c_void_p), (7, c_int), (8, c_int), (11, c_int)
_NAN, _OPERATION, _DESCRIPTOR = (10, c_int), (14, c_int), (15, c_void_p)
# The others are numbers.
_TYPES: dict[Field, tuple[int, Any]] = {
    Field.POINTWISE_MODE: _OPERATION,
    Field.POINTWISE_PRECISION: _ELEMENT,
    Field.POINTWISE_NAN: _NAN,
    Field.CONVOLUTION_SUMS: _ELEMENT,
    Field.CONVOLUTION_MODE: _DIRECTION,
    Field.HEURISTICS_MODE: _HEURISTIC,
    Field.PLAN_HANDLE: _HANDLE,
    Field.CONVOLVE_FACTOR: _FACTOR,
    Field.CONVOLVE_OLD_FACTOR: _FACTOR,
    Field.GRAPH_HANDLE: _HANDLE,
    Field.TENSOR_ELEMENT: _ELEMENT,
    Field.TENSOR_IS_VIRTUAL: _FLAG,
    Field.POINTERS_ADDRESSES: _ADDRESS,
    Field.POINTERS_WORKSPACE: _ADDRESS,
    Field.ENGINE_NOTES: _NOTE,
    **dict.fromkeys((Field.HEURISTICS_GRAPH, Field.HEURISTICS_RESULTS, Field.CONFIG_ENGINE), _DESCRIPTOR),
    **dict.fromkeys((Field.PLAN_CONFIG, Field.GRAPH_OPS, Field.CONVOLVE_WINDOW, Field.CONVOLVE_KERNEL), _DESCRIPTOR),
    **dict.fromkeys((Field.CONVOLVE_INPUT, Field.CONVOLVE_RESULT, Field.APPLY_POINTWISE), _DESCRIPTOR),
    **dict.fromkeys((Field.APPLY_INPUT, Field.APPLY_OTHER, Field.APPLY_RESULT), _DESCRIPTOR),
}


class Descriptor:
    """A description that the library keeps as long as this object lives, and those that it mentions with it."""

    def __init__(self, call: Call, kind: Kind) -> None:
        self._call, self._mentioned, self.handle = call, list[Descriptor](), c_void_p()
        call("cudnnBackendCreateDescriptor", int(kind), byref(self.handle))

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with suppress(AttributeError, MlirtError):
                self._call("cudnnBackendDestroyDescriptor", self.handle)

    def set(self, field: Field, *values: "int | float | Descriptor | None") -> Self:
        """Describe one thing."""
        number, kind = _TYPES.get(field, _NUMBER)
        self._mentioned += [one for one in values if isinstance(one, Descriptor)]
        plain = [one.handle.value if isinstance(one, Descriptor) else one for one in values]
        self._call("cudnnBackendSetAttribute", self.handle, int(field), number, len(plain), (kind * len(plain))(*plain))
        return self

    def finish(self) -> Self:
        """Let the library check what was described; raises `PlanError` for what it does not have."""
        self._call("cudnnBackendFinalize", self.handle)
        return self

    def numbers(self, field: Field, most: int) -> list[int]:
        """What the library tells, up to so many numbers."""
        number, kind = _TYPES.get(field, _NUMBER)
        found, count = (kind * most)(), c_int64()
        self._call("cudnnBackendGetAttribute", self.handle, int(field), number, most, byref(count), found)
        return [int(one) for one in found[: min(most, count.value)]]

    def fill(self, field: Field, others: "Sequence[Descriptor]") -> int:
        """Let the library describe things by these new descriptors; returns how many it did."""
        number, kind = _TYPES[field]
        handles, count = (kind * len(others))(*[one.handle.value for one in others]), c_int64()
        self._call("cudnnBackendGetAttribute", self.handle, int(field), number, len(others), byref(count), handles)
        self._mentioned += others
        return min(len(others), count.value)
