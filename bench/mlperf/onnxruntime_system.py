"""onnxruntime on the CPU as a system under test: a session, and its part of the threads, for each batch at once."""

# The peers have no types: what comes from them is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any

import numpy as np
from cpu_peer import cpu_session

from mlperf.systems import Array, Outputs, Request


class OnnxruntimeSystem:
    """Sessions that wait for a batch."""

    def __init__(self, request: Request) -> None:
        self.runs_at_once = request.runs_at_once
        threads = max(1, request.threads // request.runs_at_once)
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(request.runs_at_once):
            session = cpu_session(request.model, threads=threads)
            self._names = [value.name for value in session.get_outputs()]
            self._free.put(session)

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.empty(shape, dtype)

    def run(self, feeds: Mapping[str, Array]) -> Outputs:
        session = self._free.get()
        try:
            return dict(zip(self._names, session.run(None, dict(feeds)), strict=True))
        finally:
            self._free.put(session)

    def close(self) -> None:
        while not self._free.empty():
            self._free.get()


def opened(request: Request) -> OnnxruntimeSystem:
    """A session for each batch at once."""
    if request.device != "cpu" or request.precision != "fp32":
        raise ValueError("onnxruntime is the peer on the CPU, in float32 or with a file of integers")
    return OnnxruntimeSystem(request)
