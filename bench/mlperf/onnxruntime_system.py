"""onnxruntime on the CPU as a system under test: a session, and its part of the threads, for each batch at once."""

# The peers have no types: what comes from them is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

from cpu_peer import cpu_session

from mlperf.systems import Array, Outputs, PooledSystem, Request


class OnnxruntimeSystem(PooledSystem):
    """Sessions of one model."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        threads = max(1, request.threads // request.runs_at_once)
        for _ in range(request.runs_at_once):
            session = cpu_session(request.model, threads=threads)
            self._names = [value.name for value in session.get_outputs()]
            self.add(session)

    def run_in(self, session: Any, feeds: dict[str, Array]) -> Outputs:
        return dict(zip(self._names, session.run(None, feeds), strict=True))


def opened(request: Request) -> OnnxruntimeSystem:
    """A session for each batch at once."""
    return OnnxruntimeSystem(request)
