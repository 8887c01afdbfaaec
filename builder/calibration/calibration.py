"""What calibration finds: a scale for each tensor, kept in TensorRT's text format, with the histograms behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mlirt.atomic_file import write_file
from mlirt.builder.calibration.histogram import Histogram
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.calibration_cache import algorithm_of, read_cache, write_cache
from mlirt.passes.quantization.channel_statistics import ChannelStatistics
from mlirt.passes.quantization.tensor_ranges import MAX_INT8
from mlirt.runtime.notebook_html import bar, table

if TYPE_CHECKING:
    from mlirt.builder.calibration.histogram import Array
    from mlirt.builder.model_network import ModelSource
    from mlirt.frontend.onnx.graph_inputs import Shapes

_SHOWN = 20
"""How many tensors a notebook shows."""


@dataclass(frozen=True)
class MethodError:
    """`error` is the root of the mean squared difference of all outputs over that of the outputs themselves.

    `worst` is that of the sample that loses most: a method may miss one picture altogether and do well on the others.
    """

    method: str
    error: float
    worst: float


@dataclass(frozen=True)
class Samples:
    """What a report runs again to measure errors: the model, and a few batches."""

    model: ModelSource
    feeds: list[dict[str, Array]]
    input_shapes: Shapes
    target: str


@dataclass
class Calibration:
    """Scales by the names of the network's tensors, found by `algorithm`; 0 for a tensor that is uniformly zero.

    `channels` tells how the channels of tensors differ that products read; it may be empty. Saved and loaded as a
    calibration cache, which has no histograms: only the calibration itself can be reported.
    """

    algorithm: str
    scales: dict[str, float]
    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram], repr=False)
    channels: dict[str, ChannelStatistics] = field(default_factory=dict[str, ChannelStatistics], repr=False)
    samples: Samples | None = field(default=None, repr=False)
    errors: list[MethodError] = field(default_factory=list[MethodError], repr=False)
    """What the methods that were measured lose, those of all offered ones where the choice was left to them."""
    error: MethodError | None = None
    """What this calibration loses on samples; None where nothing was measured, as for one read from a cache."""
    first_batch: Mapping[str, Array] | None = field(default=None, repr=False)
    """What the range of half precision is checked with; None for one read from a cache."""

    @property
    def loss(self) -> str:
        """The measured error as a sentence without an end."""
        if self.error is None:
            return "the error of the outputs in int8 was not measured"
        size = f"{self.error.error:.2%} of their size (worst batch {self.error.worst:.2%})"
        return f"the outputs in int8 are off by {size} with the scales of {self.error.method}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the method, what it loses, and the widest ranges."""
        widest = sorted(self.ranges.items(), key=lambda one: -one[1])
        rows = [(name, f"{reach:.4g}", bar(reach / widest[0][1] if widest[0][1] else 0.0)) for name, reach in widest]
        shown = table(f"Calibration by {self.algorithm}: {self.loss}", ("tensor", "#range", ""), rows[:_SHOWN])
        return shown + (f"<p>.. and {len(rows) - _SHOWN} more tensors</p>" if len(rows) > _SHOWN else "")

    @property
    def ranges(self) -> dict[str, float]:
        """How far each tensor's numbers reach on either side of zero: scale * 127, exactly."""
        return {name: scale * MAX_INT8 for name, scale in self.scales.items()}

    def to_bytes(self) -> bytes:
        """The calibration cache."""
        return write_cache(self.algorithm, self.scales, self.channels)

    @classmethod
    def from_bytes(cls, cache: bytes, algorithm: str | None = None) -> Calibration:
        """Read a cache; raises `InvalidInputError` for one that is damaged, or of another algorithm than asked for."""
        found = read_cache(cache, algorithm)
        return cls(algorithm_of(cache), found.scales, channels=found.channels)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibration cache."""
        write_file(path, [self.to_bytes()], "the calibration cache")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read a calibration cache file."""
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except OSError as error:
            raise InvalidInputError(f"calibration cache {os.fspath(path)}: {error.strerror}") from error

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page: a picture of each tensor's distribution with the threshold, and which method fits best.

        Raises `InvalidInputError` for a calibration that was read from a cache.
        """
        from mlirt.builder.calibration.report import write_report

        write_report(self, Path(path))


def as_scale(threshold: float) -> float:
    """threshold / 127 as float32, which is what a cache holds."""
    return float(np.float32(threshold / MAX_INT8))
