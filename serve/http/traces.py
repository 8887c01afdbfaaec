"""Spans for OpenTelemetry, where its API is installed: one for each request, child of what the client says."""

# The package is optional, so what comes from it has no type here.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError:
    _tracer: Any = None
    _extract: Any = None
    _provider: Any = None
    _nobody: Any = None
else:
    _tracer = trace.get_tracer("mlirt.serve")
    _provider, _nobody = trace.get_tracer_provider, trace.ProxyTracerProvider
    _extract = propagate.extract


def is_traced() -> bool:
    """Whether somebody has set up a provider, so that spans of requests go anywhere."""
    return _tracer is not None and not isinstance(_provider(), _nobody)


@contextmanager
def request_span(model: str, headers: Mapping[str, str]) -> Generator[dict[str, Any]]:
    """While a request is answered; what is put into the dictionary becomes attributes of the span."""
    attributes: dict[str, Any] = {}
    if _tracer is None:
        yield attributes
        return
    carrier = {name.lower(): value for name, value in headers.items()}
    with _tracer.start_as_current_span(f"infer {model}", context=_extract(carrier)) as span:
        try:
            yield attributes
        finally:
            span.set_attributes({"mlirt.model": model, **attributes})
