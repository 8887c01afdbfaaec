"""Spans of requests, where somebody has set up OpenTelemetry: they are children of what the client says."""

# The package is not among those that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

sdk: Any = pytest.importorskip("opentelemetry.sdk.trace", reason="OpenTelemetry is not installed: make test-serve")

from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

from mlirt.serve.http.server import HttpServer, HttpSettings  # noqa: E402
from mlirt.serve.http.traces import is_traced  # noqa: E402
from mlirt.serve.models.backend import ServeSettings, open_backend  # noqa: E402
from mlirt.serve.models.model import Model  # noqa: E402
from mlirt.serve.models.models import Models  # noqa: E402

PARENT = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_request_is_a_span_of_its_client_s_trace(dense_plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter: Any = InMemorySpanExporter()
    provider: Any = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("mlirt.serve.http.traces._provider", lambda: provider)
    monkeypatch.setattr("mlirt.serve.http.traces._tracer", provider.get_tracer("mlirt.serve"))
    assert is_traced()
    assert not isinstance(provider, trace.ProxyTracerProvider)
    models = Models([Model("dense", lambda: open_backend(str(dense_plan), ServeSettings(threads=1)))])
    width = models.get("dense").signature.inputs[0].shape[1]
    data = {"name": "x", "datatype": "FP32", "shape": [1, width], "data": [0.0] * int(width)}
    with HttpServer(models, HttpSettings(port=0)) as server:
        request = urllib.request.Request(
            f"{server.url}/v2/models/dense/infer",
            json.dumps({"inputs": [data]}).encode(),
            {"traceparent": f"00-{PARENT}-00f067aa0ba902b7-01"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            assert response.status == 200
    models.close()
    (span,) = exporter.get_finished_spans()
    assert span.name == "infer dense"
    assert f"{span.context.trace_id:032x}" == PARENT
    assert span.attributes["mlirt.model"] == "dense"
    assert span.attributes["mlirt.batch_rows"] == 1
