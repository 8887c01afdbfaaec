"""What a build for INT8 needs to know of a network's tensors, from whatever the user gives as calibration."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.calibration.calibration import Calibration
from mlirt.builder.calibration.calibrator_run import run_calibrator
from mlirt.builder.calibration.calibrators import CalibratorLike, is_calibrator
from mlirt.builder.calibration.collection import Progress
from mlirt.builder.number_range.check_range import ranges_of, warn_of_range
from mlirt.builder.profiles import Profile
from mlirt.builder.separate_context import apart
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.passes.quantization.explicit_networks import is_explicit, needs_ranges, warn_of_ranges
from mlirt.passes.quantization.tensor_ranges import set_ranges

if TYPE_CHECKING:
    from mlirt.builder.calibration.histogram import Array

    CalibrationLike: TypeAlias = "Calibration | CalibratorLike | bytes | str | os.PathLike[str]"

Range = float | tuple[float, float]


@dataclass(frozen=True)
class Int8Choice:
    """The user's: a calibration; ranges by tensor, which go before it."""

    calibration: CalibrationLike | None = None
    dynamic_ranges: Mapping[str, Range] = field(default_factory=dict[str, Range])
    before_fusion: bool = False
    """Whether a calibrator gives every tensor a scale, whatever its algorithm is."""

    def __bool__(self) -> bool:
        return self.calibration is not None or bool(self.dynamic_ranges)


def prepare_int8(
    module: ModuleOp,
    ctx: RtContext,
    target: str,
    choice: Int8Choice,
    profiles: Mapping[str, Profile],
    progress: Progress | None = None,
    *,
    half: bool = False,
) -> None:
    """Let a network just imported carry the ranges of its tensors, which may mean to calibrate it now.

    `half` is whether layers may be stored in half precision: its range is checked then on a batch of the samples.
    """
    usual = {name: profile.usual for name, profile in profiles.items()}
    place = "cpu" if target == "reference" else target

    def run(calibrator: CalibratorLike) -> Calibration:
        return run_calibrator(
            calibrator, module, apart(ctx), place, usual, progress, before_fusion=choice.before_fusion
        )

    calibration = give_ranges(module, choice, run)
    if half and calibration is not None and calibration.first_batch is not None:
        _check_half_precision(module, ctx, calibration.first_batch)


def _check_half_precision(module: ModuleOp, ctx: RtContext, batch: Mapping[str, Array]) -> None:
    """Warn of layers whose results half precision cannot hold."""
    try:
        warn_of_range(ranges_of(module, ctx, [batch]))
    except (InvalidInputError, UnsupportedError) as error:  # samples of another shape than the build's, a plugin
        warnings.warn(f"the range of half precision was not checked: {error}", stacklevel=2)


def give_ranges(
    module: ModuleOp, choice: Int8Choice, run: Callable[[CalibratorLike], Calibration]
) -> Calibration | None:
    """Let a network carry the ranges of its tensors; `run` calibrates with a calibrator. The calibration is returned.

    Raises `InvalidInputError` where a network that does not quantise itself has neither calibration nor ranges.
    """
    if is_explicit(module):
        if choice:
            warn_of_ranges()
        return None
    calibration = None if choice.calibration is None else as_calibration(choice.calibration, run)
    found = {} if calibration is None else calibration.ranges
    found |= {name: reach(name, range_) for name, range_ in choice.dynamic_ranges.items()}
    if not found and (calibration is not None or not needs_ranges(module)):
        return calibration
    if not found:
        raise InvalidInputError(
            "Calibration failure occurred with no scaling factors detected: the network has no quantize layers, and "
            "neither calibration nor dynamic ranges were given; calibrate it with mlirt.calibrate, or build without "
            "int8"
        )
    channels = {} if calibration is None else calibration.channels
    set_ranges(module, found, {name: one for name, one in channels.items() if name not in choice.dynamic_ranges})
    return calibration


def as_calibration(given: CalibrationLike, run: Callable[[CalibratorLike], Calibration]) -> Calibration:
    """A calibration from a cache, its path, or a calibrator, whose cache is read before anything runs."""
    if isinstance(given, Calibration):
        return given
    if isinstance(given, bytes | bytearray | memoryview):
        return Calibration.from_bytes(bytes(given))
    if isinstance(given, str | os.PathLike):
        return Calibration.load(Path(given))
    if is_calibrator(given):
        return run(given)
    raise InvalidInputError(
        f"calibration={type(given).__name__}: expected what mlirt.calibrate gives, a cache file or its bytes, or a "
        "calibrator"
    )


def reach(name: str, range_: Range) -> float:
    """How far a range reaches on either side of zero (tensorrt-features.md#9.20); raises `InvalidInputError` for what
    is none.
    """
    low, high = range_ if isinstance(range_, tuple) else (-range_, range_)
    farthest = max(abs(low), abs(high))
    if not low <= high or not 0 < farthest < float("inf"):
        raise InvalidInputError(f"dynamic range of tensor {name!r}: expected (min, max) around 0, got ({low}, {high})")
    return float(farthest)
