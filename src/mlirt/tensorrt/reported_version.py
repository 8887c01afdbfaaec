"""The version of TensorRT that programs are told: MLIRT_TENSORRT_VERSION, or 8.5.3, whose names these are."""

from __future__ import annotations

import os
import re

VARIABLE = "MLIRT_TENSORRT_VERSION"
VERSIONS = ("8.5.3", "8.6.1", "10.0.1")
"""Those that programs are tried with, the usual one first."""


def checked_version(version: str) -> str:
    """A version as it is reported: `10.x` is the first of that kind in `VERSIONS`; raises `ValueError` for others."""
    kind = version.removesuffix(".x")
    for known in VERSIONS:
        if known == kind or known.startswith(f"{kind}."):
            return known
    if re.fullmatch(r"(8\.[56]|10\.\d+)\.\d+(\.\d+)?", version):
        return version
    raise ValueError(f"version {version!r} of TensorRT is not known: expected 8.5, 8.6 or 10, such as {VERSIONS}")


def reported_version() -> str:
    """What `tensorrt.__version__` is; raises `ValueError` where the variable has no known version."""
    return checked_version(os.environ.get(VARIABLE) or VERSIONS[0])


def reports_at_least(*version: int) -> bool:
    """Whether the reported version is that or a later one."""
    return tuple(int(part) for part in reported_version().split(".")) >= version
