"""The formats of a DLA, DLA_LINEAR and DLA_HWC4, as TensorRT's headers describe them: packed and unpacked on the host.

No engine here has tensors in them, as there is no DLA; programs that exchange data with one convert it
(tensorrt-features.md#29.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirt.errors import InvalidInputError
from mlirt.tensor_formats import DLA_FORMATS

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_LINEAR_ROW_BYTES = 64
_IMAGE_ROW_BYTES = 32
_LANES = {1: 1, 3: 4, 4: 4}
"""The channels that an image of so many takes."""
_IMAGES = 4
_ELEMENTS = {"float16": 2, "int8": 1}


def stored_shape(shape: tuple[int, ...], dtype: str, format: str) -> tuple[int, ...]:
    """The dense array that holds N x C x H x W elements; raises `InvalidInputError` for what the format cannot hold.

    DLA_LINEAR: N x C x H x W', rows of a multiple of 64 bytes. DLA_HWC4: N x H x W' x C', of one, three or four
    channels, of which three take the room of four; rows of a multiple of 32 bytes.
    """
    if format not in DLA_FORMATS:
        raise InvalidInputError(f"{format!r} is no format of a DLA; expected one of {', '.join(DLA_FORMATS)}")
    if dtype not in _ELEMENTS:
        raise InvalidInputError(f"{format} is for {' and '.join(_ELEMENTS)}, not for {dtype}")
    if len(shape) != _IMAGES:
        raise InvalidInputError(f"{format} is for N x C x H x W, not for {len(shape)} dimensions")
    batch, channels, height, width = shape
    if format == "DLA_LINEAR":
        return batch, channels, height, _up(width, _LINEAR_ROW_BYTES // _ELEMENTS[dtype])
    if channels not in _LANES:
        raise InvalidInputError(f"{format} is for 1, 3 or 4 channels, not for {channels}")
    lanes = _LANES[channels]
    return batch, height, _up(width, _IMAGE_ROW_BYTES // lanes // _ELEMENTS[dtype]), lanes


def pack_for_dla(array: Array, format: str) -> Array:
    """The dense array of a tensor N x C x H x W; what is left of rows and channels is zero."""
    import numpy as np

    found = np.zeros(stored_shape(array.shape, array.dtype.name, format), array.dtype)
    if format == "DLA_LINEAR":
        found[..., : array.shape[3]] = array
    else:
        found[:, :, : array.shape[3], : array.shape[1]] = array.transpose(0, 2, 3, 1)
    return found


def unpack_from_dla(stored: Array, format: str, shape: tuple[int, ...]) -> Array:
    """The tensor N x C x H x W that a dense array holds: the inverse of `pack_for_dla`."""
    import numpy as np

    expected = stored_shape(shape, stored.dtype.name, format)
    if stored.shape != expected:
        raise InvalidInputError(f"{format}: expected an array {expected} for a tensor {shape}, got {stored.shape}")
    if format == "DLA_LINEAR":
        return np.ascontiguousarray(stored[..., : shape[3]])
    return np.ascontiguousarray(stored[:, :, : shape[3], : shape[1]].transpose(0, 3, 1, 2))


def _up(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple
