"""TensorRT's calibration cache: one line that names the algorithm, then `tensor: scale` with the scale in hexadecimal.

    TRT-8503-EntropyCalibration2
    input: 3c010a14

The eight digits are the bits of a float32, the most significant byte first.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping

from mlirt.errors import InvalidInputError

VERSION = "8503"
_LARGEST = 1 << 28
_ENTRY = re.compile(r"(?P<name>.*\S): (?P<scale>[0-9a-fA-F]{8})")


def write_cache(algorithm: str, scales: Mapping[str, float]) -> bytes:
    """The file's contents."""
    lines = [f"TRT-{VERSION}-{algorithm}"]
    lines += [f"{name}: {struct.pack('>f', scale).hex()}" for name, scale in scales.items()]
    return ("\n".join(lines) + "\n").encode()


def read_cache(content: bytes, algorithm: str | None = None) -> dict[str, float]:
    """The scale of each tensor; raises `InvalidInputError` for a file that is damaged or of another algorithm.

    Without an `algorithm` that of the file is as good as any.
    """
    version, found, lines = _parts(content, algorithm)
    if (algorithm is not None and found != algorithm) or version[:1] != VERSION[:1]:
        raise InvalidInputError(
            f"calibration cache: it was made by {found} of version {version}, this calibrator is "
            f"{algorithm or found} of version {VERSION}; delete it to calibrate again"
        )
    scales: dict[str, float] = {}
    for number, line in enumerate(lines, 2):
        if line.strip():
            name, scale = _entry(line.strip(), number)
            scales[name] = scale
    return scales


def algorithm_of(content: bytes) -> str:
    """The algorithm that a cache's first line names; raises `InvalidInputError` where it names none."""
    return _parts(content, None)[1]


def _parts(content: bytes, algorithm: str | None) -> tuple[str, str, list[str]]:
    """Version and algorithm of the first line, and the other lines."""
    try:
        if len(content) > _LARGEST:
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
    if not math.isfinite(scale) or scale < 0:
        raise InvalidInputError(f"calibration cache, line {number}: tensor {match['name']!r} has the scale {scale}")
    return match["name"], scale
