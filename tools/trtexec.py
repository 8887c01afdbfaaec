"""trtexec: rt-exec by the name, the banner and the version number of TensorRT's own program."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mlirt.tensorrt.reported_version import reported_version
from mlirt.tools import rt_exec


def main(argv: Sequence[str] | None = None) -> int:
    """Run rt-exec; `&&&& RUNNING TensorRT.trtexec [TensorRT v8503] # trtexec ..` is its first line."""
    return rt_exec.main(argv, f"TensorRT.trtexec [TensorRT v{_number(reported_version())}] # trtexec")


def _number(version: str) -> str:
    """The version in digits as the banner has it: 8503 of 8.5.3, 100001 of 10.0.1."""
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return str(major * 10000 + minor * 100 + patch if major >= 10 else major * 1000 + minor * 100 + patch)


if __name__ == "__main__":
    sys.exit(main())
