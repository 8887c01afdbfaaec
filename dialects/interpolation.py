"""Resampling of one axis: where each output sample looks in the input, and with which weights. Pure NumPy, no IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import auto
from typing import TYPE_CHECKING

from xdsl.utils.str_enum import StrEnum

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# A scale that was computed as a quotient of lengths gives the length back up to this.
ROUNDING = 1e-6


class ResizeKind(StrEnum):
    NEAREST = auto()
    LINEAR = auto()
    CUBIC = auto()


class Coordinate(StrEnum):
    ASYMMETRIC = auto()
    HALF_PIXEL = auto()
    ALIGN_CORNERS = auto()
    PYTORCH_HALF_PIXEL = auto()
    HALF_PIXEL_SYMMETRIC = auto()
    TF_HALF_PIXEL_FOR_NN = auto()
    TF_CROP_AND_RESIZE = auto()


class Rounding(StrEnum):
    HALF_DOWN = auto()
    HALF_UP = auto()
    FLOOR = auto()
    CEIL = auto()


class Selector(StrEnum):
    FORMULA = auto()
    UPPER = auto()


@dataclass(frozen=True)
class Resampling:
    """How one axis is resampled; `scale` is output over input, `roi` the part of tf_crop_and_resize in [0, 1]."""

    kind: ResizeKind
    coordinate: Coordinate
    rounding: Rounding = Rounding.HALF_DOWN
    selector: Selector = Selector.FORMULA
    cubic_coeff: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    roi: tuple[float, float] = (0.0, 1.0)

    def positions(self, length: int, size: int, scale: float) -> Array:
        """The real-valued input position of each of `size` output samples."""
        import numpy as np

        x = np.arange(size, dtype=np.float64)
        if size == 1 and self.selector is Selector.UPPER:
            return np.zeros(1)
        match self.coordinate:
            case Coordinate.ASYMMETRIC:
                return x / scale
            case Coordinate.HALF_PIXEL:
                return (x + 0.5) / scale - 0.5
            case Coordinate.PYTORCH_HALF_PIXEL:
                return (x + 0.5) / scale - 0.5 if size > 1 else np.zeros(size)
            case Coordinate.TF_HALF_PIXEL_FOR_NN:
                return (x + 0.5) / scale
            case Coordinate.ALIGN_CORNERS:
                # As ONNX's tests have it, the length before it is rounded down counts.
                exact = size if abs(scale * length - size) < ROUNDING else scale * length
                return x * (length - 1) / (exact - 1) if exact != 1 else np.zeros(size)
            case Coordinate.HALF_PIXEL_SYMMETRIC:
                center = length / 2
                return center * (1 - size / (scale * length)) + (x + 0.5) / scale - 0.5
            case Coordinate.TF_CROP_AND_RESIZE:
                start, end = (edge * (length - 1) for edge in self.roi)
                return start + x * (end - start) / (size - 1) if size > 1 else np.full(size, 0.5 * (start + end))

    def taps(self, length: int, size: int, scale: float) -> tuple[Array, Array]:
        """Input indices and weights per output sample, both `size x taps`; indices are inside the input."""
        import numpy as np

        x = self.positions(length, size, scale)
        if self.kind is ResizeKind.NEAREST:
            return np.clip(self._nearest(x), 0, length - 1)[:, None], np.ones((size, 1))
        stretch = min(scale, 1.0) if self.antialias else 1.0
        reach = int(np.floor(-(1 if self.kind is ResizeKind.LINEAR else 2) / stretch)) + 1
        offsets = np.arange(reach, 2 - reach)
        base = np.ceil(x) - 1
        weights = self._kernel(np.abs(offsets - (x - base)[:, None]) * stretch)
        index = base[:, None].astype(np.int64) + offsets
        if self.exclude_outside:
            weights = np.where((index >= 0) & (index < length), weights, 0)
        return np.clip(index, 0, length - 1), weights / weights.sum(1, keepdims=True)

    def _nearest(self, x: Array) -> Array:
        import numpy as np

        rules: dict[Rounding, Callable[[Array], Array]] = {
            Rounding.HALF_DOWN: lambda x: np.ceil(x - 0.5),
            Rounding.HALF_UP: lambda x: np.floor(x + 0.5),
            Rounding.FLOOR: np.floor,
            Rounding.CEIL: np.ceil,
        }
        return rules[self.rounding](x).astype(np.int64)

    def _kernel(self, distance: Array) -> Array:
        """The weight of an input sample at a distance, before normalisation."""
        import numpy as np

        d, a = distance, self.cubic_coeff
        if self.kind is ResizeKind.LINEAR:
            return np.clip(1 - d, 0, 1)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = (((d - 5) * d + 8) * d - 4) * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    def outside(self, length: int, size: int, scale: float) -> Array:
        """Which output samples look outside the input and take the extrapolation value."""
        import numpy as np

        x = self.positions(length, size, scale)
        if self.coordinate is not Coordinate.TF_CROP_AND_RESIZE:
            return np.zeros(size, np.bool_)
        return (x < 0) | (x > length - 1)


def resample(x: Array, axis: int, index: Array, weights: Array) -> Array:
    """Weighted sums of the slices of `x` across `axis` that `index` names."""
    import numpy as np

    total = None
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    for tap in range(index.shape[1]):
        part = np.take(x, index[:, tap], axis)
        if index.shape[1] == 1:
            return part
        part = part * weights[:, tap].reshape(shape)
        total = part if total is None else total + part
    assert total is not None
    return total
