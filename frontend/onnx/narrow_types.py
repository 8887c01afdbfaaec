"""Element types of less than a byte and 8-bit floats: how a network without them stores their numbers.

Integers of 2 and 4 bits are kept as 8-bit integers of the same value; floats of 4 and 8 bits as the `uint8` code that
they are, but for the one kind that networks have (e4m3fn). Tables, made by ml_dtypes, say which number a code stands
for and which code a number gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from onnx import TensorProto, numpy_helper

from mlirt.errors import InvalidModelError
from mlirt.frontend.importing.narrow_type import NarrowType

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


NARROW_TYPES: dict[int, NarrowType] = {
    TensorProto.INT4: NarrowType("int4", "int8", 4),
    TensorProto.UINT4: NarrowType("uint4", "uint8", 4),
    TensorProto.INT2: NarrowType("int2", "int8", 2),
    TensorProto.UINT2: NarrowType("uint2", "uint8", 2),
    TensorProto.FLOAT8E4M3FN: NarrowType("float8_e4m3fn", "float8_e4m3fn", 8),
    TensorProto.FLOAT8E4M3FNUZ: NarrowType("float8_e4m3fnuz", "uint8", 8),
    TensorProto.FLOAT8E5M2: NarrowType("float8_e5m2", "uint8", 8),
    TensorProto.FLOAT8E5M2FNUZ: NarrowType("float8_e5m2fnuz", "uint8", 8),
    TensorProto.FLOAT4E2M1: NarrowType("float4_e2m1fn", "uint8", 4),
}


def read_narrow(tensor: TensorProto, what: str) -> Array:
    """The array of a stored tensor of a narrow type; raises `InvalidModelError` where bytes and shape disagree."""
    try:
        return NARROW_TYPES[tensor.data_type].stored(numpy_helper.to_array(tensor))
    except (ValueError, TypeError) as error:
        raise InvalidModelError(f"{what} has a shape or elements that do not fit its type: {error}") from error


@dataclass(frozen=True)
class RoundingTable:
    """How numbers become codes: by the count of `thresholds` (float32, ascending) that their magnitude exceeds.

    `codes` has the code of each count, for positive numbers and then for negative ones.
    """

    thresholds: Array
    codes: Array
    nan: int


@cache
def values_of_codes(kind: NarrowType) -> Array:
    """The float32 number that each code stands for."""
    return np.arange(2**kind.bits, dtype=np.uint8).view(kind.dtype).astype(np.float32)


@cache
def rounding_table(kind: NarrowType, saturate: bool) -> RoundingTable:
    """Rounding to nearest, ties to the even code; beyond the largest number infinity or NaN, or with `saturate` it."""
    values = values_of_codes(kind)[: 2 ** (kind.bits - 1)].astype(np.float64)
    values = values[np.isfinite(values)]
    beyond = [] if saturate else [2 * values[-1] - values[-2]]
    steps = np.append(values, beyond)
    middles = ((steps[1:] + steps[:-1]) / 2).astype(np.float32)
    upward = np.arange(1, len(steps)) % 2 == 0
    thresholds = np.where(upward, np.nextafter(middles, np.float32(0)), middles)
    magnitudes = np.append(values, [] if saturate else [np.inf]).astype(np.float32)
    codes = np.concatenate([magnitudes, -magnitudes]).astype(kind.dtype).view(np.uint8)
    nan = int(np.array([np.nan], np.float32).astype(kind.dtype).view(np.uint8)[0])
    return RoundingTable(thresholds, codes, nan)
