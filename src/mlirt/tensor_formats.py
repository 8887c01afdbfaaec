"""How a tensor lies in memory in each of TensorRT's formats: arithmetic on its dimensions, for builder and runtime.

A format cuts the channels into vectors, and puts these either side by side behind the pixels (`HWC8`) or lets each
vector have an image of its own (`CHW32`). What is left of the last vector is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mlirt.errors import InvalidInputError, InvalidModelError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Length = TypeVar("Length")

LINEAR = "LINEAR"


@dataclass(frozen=True)
class TensorLayout:
    """One format: vectors of `lanes` channels, which are the dimension `from_end` places before the end of the shape.

    `channels_last` has all vectors of a pixel side by side. `holds` names the element types that it is for.
    """

    lanes: int
    holds: tuple[str, ...]
    from_end: int = 3
    channels_last: bool = False

    def axis(self, rank: int) -> int:
        """The dimension of the channels."""
        return rank - self.from_end

    def stored_shape(self, shape: Sequence[Length | int]) -> tuple[Length | int, ...]:
        """The dense array that holds a tensor of this shape; its channels are a number."""
        axis = self.axis(len(shape))
        channels = shape[axis]
        assert isinstance(channels, int)
        vectors = -(-channels // self.lanes)
        before, behind = tuple(shape[:axis]), tuple(shape[axis + 1 :])
        if self.channels_last:
            return (*before, *behind, vectors * self.lanes)
        return (*before, vectors, *behind, self.lanes)

    def shape_of_stored(self, stored: Sequence[int], channels: int) -> tuple[int, ...]:
        """The shape of the tensor that a dense array holds, of which only the number of channels is not in it."""
        axis = self.axis(len(stored) if self.channels_last else len(stored) - 1)
        behind = stored[axis:-1] if self.channels_last else stored[axis + 1 : -1]
        return (*stored[:axis], channels, *behind)

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Vectors from one position to the next, for each dimension of the shape; for the channels, whole vectors."""
        axis = self.axis(len(shape))
        counts = [max(length, 1) for length in shape]
        counts[axis] = -(-counts[axis] // self.lanes)
        order = list(range(len(shape)))
        if self.channels_last:
            order = [*order[:axis], *order[axis + 1 :], axis]
        steps, step = [0] * len(shape), 1
        for dimension in reversed(order):
            steps[dimension] = step
            step *= counts[dimension]
        return tuple(steps)


_HALF, _BYTE, _FLOAT = "float16", "int8", "float32"

# Linear tensors are not in it: they hold everything.
LAYOUTS: Mapping[str, TensorLayout] = {
    "CHW2": TensorLayout(2, (_HALF,)),
    "HWC8": TensorLayout(8, (_HALF,), channels_last=True),
    "CHW4": TensorLayout(4, (_HALF, _BYTE)),
    "CHW16": TensorLayout(16, (_HALF,)),
    "CHW32": TensorLayout(32, (_FLOAT, _HALF, _BYTE)),
    "DHWC8": TensorLayout(8, (_HALF,), 4, channels_last=True),
    "CDHW32": TensorLayout(32, (_HALF, _BYTE), 4),
    "HWC": TensorLayout(1, (_FLOAT,), channels_last=True),
    "HWC16": TensorLayout(16, (_HALF,), channels_last=True),
}
DLA_FORMATS = ("DLA_LINEAR", "DLA_HWC4")
FORMATS = (LINEAR, *LAYOUTS, *DLA_FORMATS)


def layout_of(format: str) -> TensorLayout | None:
    """The layout of a format; None for LINEAR. Raises `InvalidInputError` for a name that is none."""
    if format != LINEAR and format not in LAYOUTS:
        known = ", ".join((LINEAR, *LAYOUTS))
        raise InvalidInputError(f"there is no tensor format {format!r}; expected one of {known}")
    return LAYOUTS.get(format)


def check_format(tensor: str, format: str, dtype: str, shape: Sequence[object]) -> None:
    """Raise `InvalidModelError` where a tensor of this element type and shape cannot lie in a format
    (tensorrt-features.md#5.2).
    """
    if format == LINEAR:
        return
    if format in DLA_FORMATS:
        raise InvalidModelError(f"{tensor}: the format {format} is for DLA, and there is none")
    layout = layout_of(format)
    assert layout is not None
    if dtype not in layout.holds:
        raise InvalidModelError(f"{tensor}: the format {format} is for {' and '.join(layout.holds)}, not for {dtype}")
    if len(shape) < layout.from_end:
        raise InvalidModelError(
            f"{tensor}: the format {format} needs {layout.from_end} dimensions or more, not {len(shape)}"
        )
    if not isinstance(shape[layout.axis(len(shape))], int):
        raise InvalidModelError(f"{tensor}: in the format {format} the number of channels is the same in every run")


def pack(array: Array, format: str) -> Array:
    """The dense array that holds a tensor in a format; what is left of the last vector is zero."""
    import numpy as np

    layout = layout_of(format)
    if layout is None:
        return array
    axis = layout.axis(array.ndim)
    room = [(0, 0)] * array.ndim
    room[axis] = (0, -array.shape[axis] % layout.lanes)
    whole = np.pad(array, room)
    if not layout.channels_last:
        whole = whole.reshape(*array.shape[:axis], -1, layout.lanes, *array.shape[axis + 1 :])
        axis += 1
    return np.ascontiguousarray(np.moveaxis(whole, axis, -1))


def unpack(stored: Array, format: str, channels: int) -> Array:
    """The tensor that a dense array holds: the inverse of `pack`."""
    import numpy as np

    layout = layout_of(format)
    if layout is None:
        return stored
    shape = layout.shape_of_stored(stored.shape, channels)
    axis = layout.axis(len(shape))
    whole = np.moveaxis(stored, -1, axis if layout.channels_last else axis + 1)
    whole = whole.reshape(*shape[:axis], -1, *shape[axis + 1 :])
    return np.ascontiguousarray(np.take(whole, range(channels), axis))
