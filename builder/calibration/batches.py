"""Sample data in any usual form as batches that a network takes: arrays, dictionaries, iterables, files, pictures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from mlirt.builder.calibration.histogram import Array
from mlirt.builder.calibration.pictures import SUFFIXES, Pictures, PixelScaling
from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.engine_interface import TensorDescription

Sample: TypeAlias = "Array | Mapping[str, Array]"
Data: TypeAlias = "Sample | Iterable[Sample] | str | os.PathLike[str]"


@dataclass(frozen=True)
class Batches:
    """The batches in order, and how many there are where that is known."""

    feeds: Iterable[dict[str, Array]]
    count: int | None = None


def batches_of(
    data: Data, inputs: Sequence[TensorDescription], batch_size: int = 1, scaling: PixelScaling | None = None
) -> Batches:
    """The batches of sample data for a network with these inputs.

    An array, or a dictionary with one per input, has the samples along its first axis; they are cut into batches of the
    network's own size, or of `batch_size` where that is dynamic. An iterable gives batches as they are, or samples
    without the first axis. A path is a `.npy` or `.npz` file, or a folder of such or of pictures, whose pixels
    `scaling` turns into numbers.

    Raises `InvalidInputError` for data that do not fit, naming the input.
    """
    if isinstance(data, str | os.PathLike):
        return _from_path(Path(data), inputs, batch_size, scaling or PixelScaling())
    if isinstance(data, np.ndarray | Mapping):
        return _cut(_named(cast("Sample", data), inputs, "the data"), inputs, batch_size)
    if not isinstance(data, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(f"calibration data: expected arrays, batches or a path, got {type(data).__name__}")
    return Batches(_checked(data, inputs))


def _from_path(path: Path, inputs: Sequence[TensorDescription], batch_size: int, scaling: PixelScaling) -> Batches:
    if path.is_file():
        return _cut(_named(_loaded(path), inputs, path.name), inputs, batch_size)
    if not path.is_dir():
        raise InvalidInputError(f"calibration data {str(path)!r}: there is no such file or folder")
    files = sorted(entry for entry in path.iterdir() if entry.suffix.lower() in {".npy", ".npz", *SUFFIXES})
    arrays = [entry for entry in files if entry.suffix.lower() not in SUFFIXES]
    if not files:
        raise InvalidInputError(
            f"calibration data {str(path)!r}: no batch of calibration data came, as the folder holds no picture and no "
            ".npy or .npz file"
        )
    if arrays:
        return Batches(_checked(map(_loaded, arrays), inputs), len(arrays))
    pictures = Pictures.for_input(inputs, scaling)
    size = _batch(inputs[0], batch_size)
    starts = range(0, len(files) - size + 1, size)
    _check_count(len(files), size, inputs[0].name)
    return Batches(({inputs[0].name: pictures.batch(files[start : start + size])} for start in starts), len(starts))


def _loaded(path: Path) -> Sample:
    try:
        with path.open("rb") as file:
            loaded: Any = np.load(file, allow_pickle=False)
            return {name: loaded[name] for name in loaded.files} if hasattr(loaded, "files") else loaded
    except (OSError, ValueError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its content is no array"
        raise InvalidInputError(f"calibration data {path.name}: it is no .npy or .npz file: {reason}") from error


def _cut(feeds: dict[str, Array], inputs: Sequence[TensorDescription], batch_size: int) -> Batches:
    first = inputs[0]
    size, total = _batch(first, batch_size), len(feeds[first.name])
    for name, array in feeds.items():
        if len(array) != total:
            raise InvalidInputError(
                f"calibration data: input {name!r} has {len(array)} samples, but {first.name!r} has {total}"
            )
    _check_count(total, size, first.name)
    cut = ({name: array[start : start + size] for name, array in feeds.items()} for start in range(0, total, size))
    whole = total // size
    return Batches(_checked((part for part, _ in zip(cut, range(whole), strict=False)), inputs), whole)


def _check_count(total: int, size: int, name: str) -> None:
    if total < size:
        raise InvalidInputError(
            f"calibration data: no batch of calibration data came for input {name!r}: it has {total} samples, a batch "
            f"of the network takes {size}"
        )


def _batch(tensor: TensorDescription, batch_size: int) -> int:
    """The network's own batch size, or the one that was asked for where the network takes any."""
    own = tensor.shape[0] if tensor.shape else 1
    return own if isinstance(own, int) else batch_size


def _checked(samples: Iterable[Sample], inputs: Sequence[TensorDescription]) -> Iterator[dict[str, Array]]:
    for number, sample in enumerate(samples):
        where = f"batch {number}"
        named = _named(sample, inputs, where)
        yield {tensor.name: fitted(named[tensor.name], tensor, where) for tensor in inputs}


def _named(sample: Sample, inputs: Sequence[TensorDescription], where: str) -> dict[str, Array]:
    names = [tensor.name for tensor in inputs]
    if isinstance(sample, Mapping):
        if set(sample) != set(names):
            raise InvalidInputError(f"calibration data, {where}: expected arrays for {names}, got {sorted(sample)}")
        return {name: np.asarray(sample[name]) for name in names}
    if len(names) != 1:
        raise InvalidInputError(
            f"calibration data, {where}: the network has the inputs {names}; give a dictionary with an array for each"
        )
    return {names[0]: np.asarray(sample)}


def fitted(array: Array, tensor: TensorDescription, where: str) -> Array:
    """The array as the network takes it: with a first axis where a sample has none, and of the network's type."""
    if array.ndim + 1 == len(tensor.shape):
        array = array[np.newaxis]
    fits = array.ndim == len(tensor.shape) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(tensor.shape, array.shape, strict=True)
    )
    if not fits:
        raise InvalidInputError(
            f"calibration data, {where}: input {tensor.name!r} has shape {list(array.shape)}, "
            f"expected {list(tensor.shape)}"
        )
    dtype = numpy_dtype(tensor.dtype)
    if array.dtype.kind == "f" and dtype.kind in "iu":
        _check_integers(array, tensor, where)
    return np.ascontiguousarray(array, dtype)


def _check_integers(array: Array, tensor: TensorDescription, where: str) -> None:
    """Data may be float32 where the network takes integers, as long as these can hold it (tensorrt-features.md#9.19).
    """
    bounds = np.iinfo(tensor.dtype)
    if not ((array >= bounds.min) & (array <= bounds.max)).all():
        raise InvalidInputError(
            f"calibration data, {where}: input {tensor.name!r} has values outside of [{bounds.min}, {bounds.max}]"
        )
