"""Arrays as callers have them, for an engine that was built for formats such as chw4, and back."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.expressions import to_text
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.tensor_formats import layout_of, pack, unpack


class ArrayFormats:
    """The formats of a plan's inputs and outputs."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    @cached_property
    def are_any(self) -> bool:
        """Whether a tensor has another format than arrays have."""
        return any(one.logical is not None for one in (*self._manifest.inputs, *self._manifest.outputs))

    def packed(self, feeds: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The inputs as a context takes them."""
        if not self.are_any:
            return feeds
        formats = {tensor.name: tensor for tensor in self._manifest.inputs}
        return {name: _packed(formats[name], array) if name in formats else array for name, array in feeds.items()}

    def unpacked(self, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of a context as arrays."""
        if not self.are_any:
            return found
        return {one.name: _unpacked(one, found[one.name]) for one in self._manifest.outputs if one.name in found}


def _packed(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    layout = layout_of(tensor.format)
    if layout is None:
        return array
    count, axis = len(tensor.known_shape), layout.axis(len(tensor.known_shape))
    if array.ndim != count or array.shape[axis] != tensor.known_shape[axis]:
        expected = ", ".join(to_text(dim) for dim in tensor.known_shape)
        raise InvalidInputError(f"input {tensor.name!r}: expected shape ({expected}), got {array.shape}")
    return pack(array, tensor.format)


def _unpacked(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    layout = layout_of(tensor.format)
    if layout is None:
        return array
    channels = tensor.known_shape[layout.axis(len(tensor.known_shape))]
    assert isinstance(channels, int)
    return unpack(array, tensor.format, channels)
