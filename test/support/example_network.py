"""The network of examples/small_network.py, which the pages use; a module of the same name is beside this one."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import onnx

_SCRIPT = Path(__file__).parents[2] / "examples" / "small_network.py"


def example_network() -> onnx.ModelProto:
    """One with a dynamic batch: image float32[n, 3, 8, 8] to scores float32[n, 10]."""
    return cast("onnx.ModelProto", runpy.run_path(str(_SCRIPT))["small_network"]())
