"""OpenVINO on the CPU as a system under test, in float32 (and int8 where the file says so), not in bfloat16.

Its own hints choose streams: latency where one batch runs at a time, throughput where several do.
"""

# The peers have no types: what comes from them is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import queue
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from mlperf.systems import Array, Outputs, Request


class OpenvinoSystem:
    """Inference requests that wait for a batch."""

    def __init__(self, request: Request) -> None:
        self.runs_at_once = request.runs_at_once
        openvino: Any = import_module("openvino")
        settings = {
            "PERFORMANCE_HINT": "LATENCY" if request.runs_at_once == 1 else "THROUGHPUT",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": request.threads,
            "NUM_STREAMS": request.runs_at_once,
        }
        self._compiled = openvino.Core().compile_model(str(request.model), "CPU", settings)
        self._names = [output.get_any_name() for output in self._compiled.outputs]
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(request.runs_at_once):
            self._free.put(self._compiled.create_infer_request())

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.empty(shape, dtype)

    def run(self, feeds: Mapping[str, Array]) -> Outputs:
        request = self._free.get()
        try:
            results = request.infer(dict(feeds), share_inputs=True)
            return {name: results[index] for index, name in enumerate(self._names)}
        finally:
            self._free.put(request)

    def close(self) -> None:
        while not self._free.empty():
            self._free.get()


def opened(request: Request) -> OpenvinoSystem:
    """A compiled model with an inference request for each batch at once."""
    if request.device != "cpu" or request.precision != "fp32":
        raise ValueError("OpenVINO is the peer on the CPU, in float32 or with a file of integers")
    return OpenvinoSystem(request)
