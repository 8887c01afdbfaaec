"""Calibrates with a calibrator as TensorRT does: its cache first, then its batches, then the cache is written."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import index
from typing import SupportsIndex

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.calibration.addressed_batches import from_address
from mlirt.builder.calibration.batches import Batches, fitted
from mlirt.builder.calibration.calibrate import calibration_of, collect
from mlirt.builder.calibration.calibration import Calibration
from mlirt.builder.calibration.calibrators import CalibratorLike, method_of_calibrator
from mlirt.builder.calibration.collection import Collection, Progress
from mlirt.builder.calibration.histogram import Array
from mlirt.builder.calibration.method_choice import checked, warn_of_error
from mlirt.builder.calibration.observed_network import cleaned
from mlirt.builder.input_descriptions import input_descriptions
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError
from mlirt.runtime.engine_interface import TensorDescription

Shapes = Mapping[str, Sequence[int]]

HAS_IMPLICIT_BATCH = "trt.has_implicit_batch"
"""The attribute of a network whose calibrator chooses the batch, as the shape that is calibrated with has it."""


def run_calibrator(
    calibrator: CalibratorLike,
    module: ModuleOp,
    ctx: RtContext,
    target: str,
    profile: Shapes,
    progress: Progress | None = None,
    *,
    before_fusion: bool = False,
) -> Calibration:
    """The scales of a network just imported, which is left as it is.

    `profile` has the shape of each input with dynamic dimensions: the usual one of the calibration profile (9.18). With
    `before_fusion` every tensor has a scale, whatever the calibrator's algorithm is (tensorrt-features.md#3.11).
    Without any batch there is a warning, and there are no scales (tensorrt-features.md#9.23). Raises
    `InvalidInputError` for a batch size that does not fit, and for a cache of another algorithm.
    """
    method = method_of_calibrator(calibrator)
    cache = calibrator.read_calibration_cache()
    if cache is not None and len(bytes(cache)):
        return Calibration.from_bytes(bytes(cache), method.algorithm)
    inputs = [_fixed(tensor, profile) for tensor in input_descriptions(module)]
    if HAS_IMPLICIT_BATCH not in module.attributes:
        _check_batch_size(calibrator.get_batch_size(), inputs, input_descriptions(module))
    feeds = _batches(calibrator, inputs, target)
    first = next(feeds, None)
    if first is None:
        warnings.warn(
            "no batch of calibration data came: the distribution of every tensor is all zero, and layers stay in float",
            stacklevel=2,
        )
        return Calibration(method.algorithm, {})
    every = method.before_fusion or before_fusion
    collection = Collection(cleaned(module.clone(), ctx, target), ctx, target, every, progress)
    kept = collect(collection, Batches(chain([first], feeds)))
    calibration = checked(collection, calibration_of(method, collection), type(calibrator).__name__, kept)
    calibration.first_batch = kept[0]
    warn_of_error(collection, calibration, kept)
    calibrator.write_calibration_cache(memoryview(calibration.to_bytes()))
    return calibration


def _fixed(tensor: TensorDescription, profile: Shapes) -> TensorDescription:
    """The input with the sizes that all batches have."""
    if all(isinstance(dim, int) for dim in tensor.shape):
        return tensor
    if tensor.name not in profile:
        raise InvalidInputError(
            f"input {tensor.name!r} has shape {list(tensor.shape)}: a network with dynamic dimensions is calibrated "
            "with the usual shape of a profile; give profiles"
        )
    return TensorDescription(tensor.name, tensor.dtype, tuple(profile[tensor.name]))


def _check_batch_size(size: int, inputs: Sequence[TensorDescription], own: Sequence[TensorDescription]) -> None:
    dynamic = any(not isinstance(dim, int) for tensor in own for dim in tensor.shape)
    expected = 1 if dynamic else inputs[0].shape[0] if inputs and inputs[0].shape else 1
    # TensorRT counts an explicit batch as part of the sample, so 1 is always right.
    if size not in (1, expected):
        raise InvalidInputError(
            f"calibrator: get_batch_size gives {size}, expected {expected} for input {inputs[0].name!r} of shape "
            f"{list(own[0].shape)}"
        )


def _batches(
    calibrator: CalibratorLike, inputs: Sequence[TensorDescription], target: str
) -> Iterator[dict[str, Array]]:
    names = [tensor.name for tensor in inputs]
    for number in range(1 << 62):
        batch = calibrator.get_batch(names)
        if batch is None or isinstance(batch, bool) or len(batch) == 0:
            return
        if len(batch) != len(inputs):
            raise InvalidInputError(
                f"calibrator: get_batch gave {len(batch)} buffers, expected one for each of {names}"
            )
        pairs = zip(inputs, batch, strict=True)
        yield {tensor.name: _array(buffer, tensor, target, f"batch {number}") for tensor, buffer in pairs}


def _array(buffer: object, tensor: TensorDescription, target: str, where: str) -> Array:
    """What get_batch gave as an array: an array itself, or the address of memory of the target that holds one."""
    if isinstance(buffer, SupportsIndex) and not hasattr(buffer, "__array__"):
        return from_address(index(buffer), [int(dim) for dim in tensor.shape], tensor.dtype, target)
    return fitted(np.asarray(buffer), tensor, where)
