"""Sessions of onnxruntime on the CPU come from one place for tests and one for benchmarks, and are exact everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cpu_peer
import numpy as np
import onnx
import onnxruntime_session
import pytest
from onnx_models import one_node

ROOT = Path(__file__).parents[2]
PLACES = [ROOT / "test" / "support" / "onnxruntime_session.py", ROOT / "bench" / "cpu_peer.py"]
_PROVIDER = "CPU" + "ExecutionProvider"


def test_nobody_else_makes_sessions() -> None:
    found = [path for package in ("bench", "examples", "test") for path in sorted((ROOT / package).rglob("*.py"))]
    assert [path for path in found if _PROVIDER in path.read_text(encoding="utf-8")] == [PLACES[1], PLACES[0]]


@pytest.mark.parametrize("make", [onnxruntime_session.cpu_session, cpu_peer.cpu_session])
def test_products_of_int8_do_not_saturate(make: Callable[[onnx.ModelProto], Any]) -> None:
    """255 * 127 + 255 * 127 does not fit into 16 bits."""
    arrays = [np.full((4, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)]
    model, feeds = one_node("MatMulInteger", arrays, 10, [1])
    session = make(model)
    assert session.get_session_options().get_session_config_entry("session.x64quantprecision") == "1"
    np.testing.assert_array_equal(session.run(None, feeds)[0], 64 * 255 * 127)
