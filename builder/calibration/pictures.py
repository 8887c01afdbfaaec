"""Pictures from files as batches of a network that takes images; needs Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from mlirt.builder.calibration.histogram import Array
from mlirt.errors import InvalidInputError
from mlirt.runtime.engine_interface import TensorDescription

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".gif", ".tif", ".tiff"})
_COLOURS = {1: "L", 3: "RGB"}
_USUAL_SIZE = 224

Numbers = float | Sequence[float]


@dataclass(frozen=True)
class PixelScaling:
    """A network's number for a pixel of 0 to 255 is (pixel * scale - mean) / std."""

    mean: Numbers = 0.0
    std: Numbers = 1.0
    scale: float = 1 / 255

    def apply(self, pixels: Array) -> Array:
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        return (pixels * np.float32(self.scale) - mean) / std


@dataclass(frozen=True)
class Pictures:
    """Resizes pictures to height x width and scales their pixels."""

    name: str
    colours: int
    height: int
    width: int
    channels_last: bool
    scaling: PixelScaling

    @classmethod
    def for_input(cls, inputs: Sequence[TensorDescription], scaling: PixelScaling) -> Self:
        """For a network with one image input, N x C x H x W or N x H x W x C; raises `InvalidInputError` for others."""
        shape = inputs[0].shape if len(inputs) == 1 else ()
        places = [axis for axis in (1, 3) if len(shape) == 4 and shape[axis] in _COLOURS]
        if not places:
            raise InvalidInputError(
                "calibration data: pictures fit a network with one input of 1 or 3 channels, this one has "
                + ", ".join(f"{tensor.name!r} {list(tensor.shape)}" for tensor in inputs)
            )
        last = places[0] == 3
        sizes = [size if isinstance(size, int) else _USUAL_SIZE for size in (shape[1:3] if last else shape[2:])]
        colours = shape[places[0]]
        assert isinstance(colours, int)
        return cls(inputs[0].name, colours, sizes[0], sizes[1], last, scaling)

    def batch(self, files: Sequence[Path]) -> Array:
        """The pictures of these files along a first axis, float32."""
        return np.ascontiguousarray(np.stack([self._array(file) for file in files]), np.float32)

    def _array(self, file: Path) -> Array:
        pixels = _pixels(file, _COLOURS[self.colours], (self.width, self.height))
        pixels = pixels.reshape(self.height, self.width, self.colours)
        scaled = self.scaling.apply(pixels)
        return scaled if self.channels_last else scaled.transpose(2, 0, 1)


def _pixels(file: Path, mode: str, size: tuple[int, int]) -> Array:
    try:
        from PIL import Image
    except ImportError as error:
        raise InvalidInputError(
            "calibration data: pictures need Pillow (pip install pillow); or give arrays in .npy files"
        ) from error
    try:
        with Image.open(file) as picture:
            return np.asarray(picture.convert(mode).resize(size, Image.Resampling.BILINEAR), np.float32)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"calibration data {file.name}: it is no picture: {error}") from error
