"""Formats of tensors: where each element lies (tensorrt-features.md#5.2 to 5.4), and that nothing is lost on the way.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.tensor_formats import DLA_FORMATS, FORMATS, LAYOUTS, check_format, layout_of, pack, unpack

DTYPES = ("float32", "float16", "int8", "int32", "bool", "uint8")
# tensorrt-features.md#5.2, as the guide has it.
LEGAL = {
    "LINEAR": set(DTYPES),
    "CHW2": {"float16"},
    "CHW4": {"float16", "int8"},
    "HWC8": {"float16"},
    "CHW16": {"float16"},
    "CHW32": {"float32", "float16", "int8"},
    "DHWC8": {"float16"},
    "CDHW32": {"float16", "int8"},
    "HWC": {"float32"},
    "HWC16": {"float16"},
    "DLA_LINEAR": set[str](),
    "DLA_HWC4": set[str](),
}


@pytest.mark.parametrize(("format", "dtype"), list(product(FORMATS, DTYPES)))
def test_formats_and_element_types(format: str, dtype: str) -> None:
    """tensorrt-features.md#5.2 and 5.11."""
    if dtype in LEGAL[format]:
        check_format("x", format, dtype, (1, 3, 4, 5, 6))
    else:
        with pytest.raises(InvalidModelError, match=f"x: the format {format} is for"):
            check_format("x", format, dtype, (1, 3, 4, 5, 6))


def test_all_formats_are_in_the_table() -> None:
    assert set(LEGAL) == set(FORMATS)
    assert len(FORMATS) == 12
    assert set(LAYOUTS) == set(FORMATS) - {"LINEAR", *DLA_FORMATS}
    assert layout_of("LINEAR") is None
    with pytest.raises(InvalidInputError, match="no tensor format 'CHW3'"):
        layout_of("CHW3")


def test_formats_need_dimensions_and_a_number_of_channels() -> None:
    with pytest.raises(InvalidModelError, match="x: the format HWC needs 3 dimensions or more, not 2"):
        check_format("x", "HWC", "float32", (3, 4))
    with pytest.raises(InvalidModelError, match="the number of channels is the same in every run"):
        check_format("x", "HWC", "float32", (1, "c", 3, 4))


@pytest.mark.parametrize("format", list(LAYOUTS))
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 32, 1, 2), (2, 3, 33, 4, 5), (5, 1, 2, 2, 3)])
def test_each_element_lies_where_the_strides_say(format: str, shape: tuple[int, ...]) -> None:
    """tensorrt-features.md#5.3 and 5.4: base + (vector . strides) * lanes + place in the vector; what is left of a
    vector is zero.
    """
    layout = LAYOUTS[format]
    array = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    stored = pack(array, format)
    assert stored.shape == layout.stored_shape(shape)
    assert layout.shape_of_stored(stored.shape, shape[layout.axis(len(shape))]) == shape
    flat, expected = stored.reshape(-1), np.zeros(stored.size, array.dtype)
    axis, steps = layout.axis(len(shape)), layout.strides(shape)
    for place in np.ndindex(*shape):
        vector = [*place]
        vector[axis], lane = divmod(place[axis], layout.lanes)
        expected[sum(a * b for a, b in zip(vector, steps, strict=True)) * layout.lanes + lane] = array[place]
    np.testing.assert_array_equal(flat, expected)
    np.testing.assert_array_equal(unpack(stored, format, shape[axis]), array)


def test_three_dimensions_begin_with_the_channels() -> None:
    array = np.arange(24).reshape(3, 2, 4)
    assert pack(array, "CHW4").shape == (1, 2, 4, 4)
    np.testing.assert_array_equal(pack(array, "HWC"), array.transpose(1, 2, 0))


def test_size_of_a_buffer() -> None:
    """tensorrt-features.md#5.3: 3 channels of 16 pictures of 224 x 224 halves take 8 channels' bytes."""
    shape = LAYOUTS["HWC8"].stored_shape((16, 3, 224, 224))
    assert np.prod(shape) * 2 == 16 * 8 * 224 * 224 * 2
