"""OpenVINO on the CPU as a system under test, in float32 (and int8 where the file says so), not in bfloat16.

Its own hints choose streams: latency where one batch runs at a time, throughput where several do.
"""

# The peers have no types: what comes from them is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlperf.systems import Array, Outputs, PooledSystem, Request


class OpenvinoSystem(PooledSystem):
    """Inference requests of one compiled model."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        openvino: Any = import_module("openvino")
        settings = {
            "PERFORMANCE_HINT": "LATENCY" if request.runs_at_once == 1 else "THROUGHPUT",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": request.threads,
            "NUM_STREAMS": request.runs_at_once,
        }
        self._compiled = openvino.Core().compile_model(str(request.model), "CPU", settings)
        self._names = [output.get_any_name() for output in self._compiled.outputs]
        for _ in range(request.runs_at_once):
            self.add(self._compiled.create_infer_request())

    def run_in(self, session: Any, feeds: dict[str, Array]) -> Outputs:
        results = session.infer(feeds, share_inputs=True)
        return {name: results[index] for index, name in enumerate(self._names)}


def opened(request: Request) -> OpenvinoSystem:
    """A compiled model with an inference request for each batch at once."""
    return OpenvinoSystem(request)
