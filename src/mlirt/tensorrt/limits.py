"""TensorRT's limits for programs by its names: what TensorRT refuses or changes, though mlirt computes it.

They count for `OnnxParser`, `Builder` and `Refitter`, as programs rely on them, and never for `mlirt.compile`, IR and
tools. MLIRT_BEYOND_TENSORRT=1 lifts them.
"""

from __future__ import annotations

import os

VARIABLE = "MLIRT_BEYOND_TENSORRT"


def limits_count() -> bool:
    """Whether a program by TensorRT's names meets its limits: yes, unless the variable is set to 1."""
    return os.environ.get(VARIABLE, "") in ("", "0")


def way_out() -> str:
    """What an error that is a limit of TensorRT alone says last."""
    return f"mlirt.compile takes it, and so does this with {VARIABLE}=1"
