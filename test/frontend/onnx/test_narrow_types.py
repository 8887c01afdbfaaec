"""Tables of narrow element types: every code and every float16 number, against ml_dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from mlirt.frontend.importing.narrow_type import NarrowType
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES, read_narrow, rounding_table, values_of_codes

FLOATS = [kind for kind in NARROW_TYPES.values() if not kind.is_integer]
NUMBERS = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _rounded(numbers: np.ndarray, kind: NarrowType, saturate: bool) -> np.ndarray:
    table = rounding_table(kind, saturate)
    count = (np.abs(numbers)[:, None] > table.thresholds).sum(1) + np.signbit(numbers) * (len(table.codes) // 2)
    return np.where(np.isnan(numbers), table.nan, table.codes[count]).astype(np.uint8)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_every_number_gets_the_code_that_ml_dtypes_gives_it(kind: NarrowType, saturate: bool) -> None:
    with np.errstate(all="ignore"):
        numbers = numpy_helper.saturate_cast(NUMBERS, kind.dtype) if saturate else NUMBERS.astype(kind.dtype)
    found, expected = _rounded(NUMBERS, kind, saturate), numbers.view(np.uint8)
    no_number = np.isnan(found.view(kind.dtype).astype(np.float32)) | (kind.bits == 4)  # 4 bits hold no NaN
    same = (found == expected) | (np.isnan(NUMBERS) & no_number)
    assert same.all(), NUMBERS[~same][:5]


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_every_code_is_rounded_to_itself(kind: NarrowType) -> None:
    values = values_of_codes(kind)
    kept = ~np.isnan(values)
    assert (_rounded(values, kind, False)[kept] == np.arange(len(values))[kept]).all()


@pytest.mark.parametrize("data_type", sorted(NARROW_TYPES))
def test_tensors_are_read_as_what_they_are_stored_in(data_type: int) -> None:
    kind = NARROW_TYPES[data_type]
    numbers = np.array([[0, 1, 1], [0, 1, 0]]).astype(kind.dtype)
    stored = read_narrow(numpy_helper.from_array(numbers), "w")
    assert stored.dtype == kind.storage
    np.testing.assert_array_equal(kind.numbers(stored).astype(np.float32), numbers.astype(np.float32))


def test_limits() -> None:
    assert NARROW_TYPES[TensorProto.INT4].limits() == (-8, 7)
    assert NARROW_TYPES[TensorProto.UINT2].limits() == (0, 3)
