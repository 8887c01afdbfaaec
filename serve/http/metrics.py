"""Counts and times of all models, as Prometheus reads them."""

# prometheus_client tells its checkers less than they ask for.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from mlirt.serve.models.backend import Backend
from mlirt.serve.models.models import Models

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """What /metrics tells."""

    def __init__(self, models: Models) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_ModelCollector(models))
        self._seconds = Histogram(
            "mlirt_request_seconds",
            "Seconds from reading a request to its response",
            ["model", "status"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._waits = Histogram(
            "mlirt_queue_seconds",
            "Seconds that a request waited for its batch",
            ["model"],
            buckets=_SECONDS,
            registry=self._registry,
        )

    def answered(self, model: str, status: int, seconds: float, waited: float) -> None:
        """A request has its response."""
        self._seconds.labels(model, str(status)).observe(seconds)
        self._waits.labels(model).observe(waited)

    def text(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self._registry)


class _ModelCollector(Collector):
    """Reads what batchers and replicas count themselves."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("mlirt_requests", "Requests by how they ended", labels=["model", "outcome"])
        batches = HistogramMetricFamily("mlirt_batch_rows", "Rows of the batches that were run", labels=["model"])
        waiting = GaugeMetricFamily("mlirt_queue_length", "Requests that wait", labels=["model"])
        ready = GaugeMetricFamily("mlirt_model_ready", "Whether the model answers", labels=["model"])
        replicas = GaugeMetricFamily("mlirt_replicas", "Worker processes that run", labels=["model"])
        restarts = CounterMetricFamily("mlirt_replica_restarts", "Worker processes started again", labels=["model"])
        reloads = CounterMetricFamily("mlirt_reloads", "How often the model was replaced", labels=["model"])
        for model in self._models:
            ready.add_metric([model.name], float(model.is_ready))
            reloads.add_metric([model.name], model.reloads)
            backend = model.current
            if backend is not None:
                _add(model.name, backend, requests, batches, waiting, replicas, restarts)
        yield from (requests, batches, waiting, ready, replicas, restarts, reloads)


def _add(
    name: str,
    backend: Backend,
    requests: CounterMetricFamily,
    batches: HistogramMetricFamily,
    waiting: GaugeMetricFamily,
    replicas: GaugeMetricFamily,
    restarts: CounterMetricFamily,
) -> None:
    use = backend.batcher.use
    for outcome, count in use.requests.items():
        requests.add_metric([name, outcome], count)
    batches.add_metric([name], _buckets(use.batches), sum(rows * count for rows, count in use.batches.items()))
    waiting.add_metric([name], use.waiting)
    if backend.pool is not None:
        replicas.add_metric([name], len(backend.pool.pids))
        restarts.add_metric([name], backend.pool.restarts)


def _buckets(batches: Mapping[int, int]) -> list[tuple[str, float]]:
    """How many batches have at most so many rows."""
    bounds = [(str(bound), float(bound)) for bound in _ROWS] + [("+Inf", float("inf"))]
    return [(text, sum(count for rows, count in batches.items() if rows <= bound)) for text, bound in bounds]
