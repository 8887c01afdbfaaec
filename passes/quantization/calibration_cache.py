"""TensorRT's calibration cache: one line that names the algorithm, then `tensor: scale` with the scale in hexadecimal.

    TRT-8503-EntropyCalibration2
    input: 3c010a14

The eight digits are the bits of a float32, the most significant byte first. What is known of channels follows in
the end in the same form, so that programs that know tensors alone can read it too:

    conv1: 3c010a14
    conv1[0].least: bdcccccd
    conv1[0].greatest: 3f000000
    conv1[0].mean: bd4ccccd
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.channel_statistics import ChannelStatistics

VERSION = "8503"
_MAX_BYTES = 1 << 28
_ENTRY = re.compile(r"(?P<name>.*\S): (?P<scale>[0-9a-fA-F]{8})")


_OF_CHANNEL = re.compile(r"(?P<name>.+)\[(?P<channel>\d+)\]\.(?P<part>least|greatest|mean)")
_FIRST = "0", "least"
_PARTS = ("least", "greatest", "mean")


@dataclass(frozen=True)
class Cache:
    """The scale of each tensor, and of some tensors what is known of their channels."""

    scales: dict[str, float]
    channels: dict[str, ChannelStatistics]


def write_cache(
    algorithm: str, scales: Mapping[str, float], channels: Mapping[str, ChannelStatistics] | None = None
) -> bytes:
    """The file's contents."""
    lines = [f"TRT-{VERSION}-{algorithm}"]
    lines += [_line(name, scale) for name, scale in scales.items()]
    known: Mapping[str, ChannelStatistics] = channels or {}
    lines += [line for name, one in known.items() for line in _channel_lines(name, one)]
    return ("\n".join(lines) + "\n").encode()


def _channel_lines(name: str, known: ChannelStatistics) -> Iterator[str]:
    for channel, numbers in enumerate(zip(known.least, known.greatest, known.means, strict=True)):
        for part, number in zip(_PARTS, numbers, strict=True):
            yield _line(f"{name}[{channel}].{part}", float(number))


def _line(name: str, number: float) -> str:
    return f"{name}: {struct.pack('>f', number).hex()}"


def read_cache(content: bytes, algorithm: str | None = None) -> Cache:
    """What a file holds; raises `InvalidInputError` for one that is damaged or of another algorithm.

    Without an `algorithm` that of the file is as good as any.
    """
    version, found, lines = _parts(content, algorithm)
    if (algorithm is not None and found != algorithm) or version[:1] != VERSION[:1]:
        raise InvalidInputError(
            f"calibration cache: it was made by {found} of version {version}, this calibrator is "
            f"{algorithm or found} of version {VERSION}; delete it to calibrate again"
        )
    scales: dict[str, float] = {}
    columns: dict[str, dict[str, list[float]]] = {}
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        name, value = _entry(line.strip(), number)
        part = _OF_CHANNEL.fullmatch(name)
        if part is not None and (part["name"] in {*scales, *columns} or (part["channel"], part["part"]) == _FIRST):
            column = columns.setdefault(part["name"], {name: [] for name in _PARTS})[part["part"]]
            if int(part["channel"]) != len(column):
                raise InvalidInputError(
                    f"calibration cache, line {number}: tensor {part['name']!r} has channel {part['channel']}, "
                    f"expected channel {len(column)}"
                )
            column.append(value)
        elif value >= 0:
            scales[name] = value
        else:
            raise InvalidInputError(f"calibration cache, line {number}: tensor {name!r} has the scale {value}")
    return Cache(scales, {name: _statistics(name, column) for name, column in columns.items()})


def _statistics(name: str, columns: Mapping[str, Sequence[float]]) -> ChannelStatistics:
    import numpy as np

    least, greatest, means = (np.asarray(columns[part], np.float32) for part in _PARTS)
    if not len(least) == len(greatest) == len(means):
        counts = ", ".join(f"{len(columns[part])} of {part}" for part in _PARTS)
        raise InvalidInputError(f"calibration cache: tensor {name!r} has lines {counts}, expected as many of each")
    return ChannelStatistics(least, greatest, means)


def algorithm_of(content: bytes) -> str:
    """The algorithm that a cache's first line names; raises `InvalidInputError` where it names none."""
    return _parts(content, None)[1]


def _parts(content: bytes, algorithm: str | None) -> tuple[str, str, list[str]]:
    """Version and algorithm of the first line, and the other lines."""
    try:
        if len(content) > _MAX_BYTES:
            raise ValueError(f"it has {len(content)} bytes")
        header, *lines = content.decode("utf-8").splitlines()
    except ValueError as error:
        raise InvalidInputError(f"calibration cache: expected text that begins with TRT-{VERSION}: {error}") from error
    match = re.fullmatch(r"TRT-(\d+)-(\w+)", header.strip())
    if match is None:
        raise InvalidInputError(
            f"calibration cache: expected a first line such as TRT-{VERSION}-{algorithm or 'EntropyCalibration2'}, "
            f"got {header[:60]!r}"
        )
    return match[1], match[2], lines


def _entry(line: str, number: int) -> tuple[str, float]:
    match = _ENTRY.fullmatch(line)
    if match is None:
        raise InvalidInputError(f"calibration cache, line {number}: expected 'tensor: 3c010a14', got {line[:80]!r}")
    scale: float = struct.unpack(">f", bytes.fromhex(match["scale"]))[0]
    if not math.isfinite(scale):
        raise InvalidInputError(f"calibration cache, line {number}: tensor {match['name']!r} has the scale {scale}")
    return match["name"], scale
