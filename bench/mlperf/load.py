"""One test of the load generator: its settings, the run, what its summary and its accuracy log say.

The logs stay as they are written, in the folder that is named.
"""

# The load generator has no types: what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mlperf.driver import Complete, Driver, respond
from mlperf.samples import SampleLibrary

SCENARIOS = ("SingleStream", "MultiStream", "Offline", "Server")
_NANO = 1_000_000_000
_MORE = 3.0
_SWITCH_SECONDS = 2e-4
"""After which a thread of Python gives its lock to another one: with the usual 5 ms answers would wait for queries."""


@dataclass(frozen=True)
class LoadSettings:
    """What the load generator is asked for.

    scenario: one of SCENARIOS. accuracy: each sample once, with its answer in the log, in place of a measurement.
    seconds: the least time of a measurement. rate: samples a second that are expected (Offline), or sent (Server).
    streams: samples of a query of MultiStream. latency: the bound on the 99th percentile of Server, in seconds.
    queries: the least number of queries.
    """

    scenario: str
    accuracy: bool = False
    seconds: float = 10.0
    rate: float = 1.0
    streams: int = 8
    latency: float = 0.1
    queries: int = 1


@dataclass(frozen=True)
class Summary:
    """The load generator's own summary, by the names that it has there."""

    entries: dict[str, str]
    asked: int = 0
    """How many samples the load generator asked for, the repeated ones that fill a last query included."""

    def number(self, *names: str) -> float:
        """The first of some entries that is there."""
        for name in names:
            if name in self.entries:
                return float(self.entries[name])
        raise KeyError(f"the summary has none of {', '.join(names)}; it has {', '.join(self.entries)}")

    @property
    def samples_per_second(self) -> float:
        """Of Offline, or those that Server completed."""
        return self.number("Samples per second", "Completed samples per second", "Scheduled samples per second")

    def percentile(self, percent: float) -> float:
        """A percentile of the latencies, in seconds."""
        return self.number(f"{percent:.2f} percentile latency (ns)") / _NANO

    @property
    def is_valid(self) -> bool:
        """Whether it fulfils the load generator's own conditions."""
        return self.entries.get("Result is") == "VALID"


def load_generator() -> Any:
    """The package; raises `ModuleNotFoundError`, which says where it is had from."""
    try:
        return import_module("mlperf_loadgen")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("the load generator is missing: pip install 'mlirt[mlperf]'") from error


def run_test(
    settings: LoadSettings, library: SampleLibrary, logs: Path, driver_of: Callable[[Complete], Driver]
) -> Summary:
    """Run one test and read its summary. Raises what a batch raised; its samples have empty answers in the log then."""
    loadgen = load_generator()
    sys.setswitchinterval(_SWITCH_SECONDS)
    logs.mkdir(parents=True, exist_ok=True)
    driver = driver_of(partial(respond, loadgen))
    asked = 0

    def issue(ids: Sequence[int], indices: Sequence[int]) -> None:
        nonlocal asked
        asked += len(ids)
        driver.issue(ids, indices)

    sut = loadgen.ConstructFastSUT(issue, driver.flush)
    qsl = loadgen.ConstructQSL(library.count, library.count, library.load, library.unload)
    log = loadgen.LogSettings()
    log.log_output = loadgen.LogOutputSettings()
    log.log_output.outdir, log.log_output.copy_summary_to_stdout = str(logs), False
    log.enable_trace = False
    try:
        loadgen.StartTestWithLogSettings(sut, qsl, _test_settings(loadgen, settings), log, str(logs / "audit.config"))
        driver.close()
    finally:
        loadgen.DestroyQSL(qsl)
        loadgen.DestroyFastSUT(sut)
    if driver.failure is not None:
        raise driver.failure
    return replace(read_summary(logs), asked=asked)


def _test_settings(loadgen: Any, settings: LoadSettings) -> Any:
    found = loadgen.TestSettings()
    found.scenario = getattr(loadgen.TestScenario, settings.scenario)
    found.mode = loadgen.TestMode.AccuracyOnly if settings.accuracy else loadgen.TestMode.PerformanceOnly
    found.min_duration_ms = round(1e3 * settings.seconds)
    found.min_query_count = settings.queries
    found.offline_expected_qps = settings.rate
    # With a latency that is too long there would be too few queries; with one that is too short the time ends the test.
    rate = _MORE * settings.rate
    found.single_stream_expected_latency_ns = round(_NANO / rate)
    found.multi_stream_samples_per_query = settings.streams
    found.multi_stream_expected_latency_ns = round(_NANO * settings.streams / rate)
    found.server_target_qps = settings.rate
    found.server_target_latency_ns = round(_NANO * settings.latency)
    found.server_coalesce_queries = True
    return found


def read_summary(logs: Path) -> Summary:
    """What mlperf_log_summary.txt says."""
    lines = (logs / "mlperf_log_summary.txt").read_text().splitlines()
    pairs = [re.match(r"\s*(.+?)\s*:\s*(.+?)\s*$", line) for line in lines]
    return Summary({pair[1]: pair[2] for pair in pairs if pair is not None})


def read_answers(logs: Path) -> list[tuple[int, bytes]]:
    """Index and answer of each sample in the accuracy log, in the order in which they came."""
    entries = json.loads((logs / "mlperf_log_accuracy.json").read_text())
    return [(int(entry["qsl_idx"]), bytes.fromhex(entry["data"])) for entry in entries]


def answer_arrays(data: bytes, outputs: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> dict[str, np.ndarray]:
    """The outputs of a sample, which lie one behind the other; raises `ValueError` for another number of bytes."""
    found: dict[str, np.ndarray] = {}
    start = 0
    for name, (dtype, shape) in outputs.items():
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if start + size > len(data):
            raise ValueError(f"an answer has {len(data)} bytes, which are too few for {name}")
        found[name] = np.frombuffer(data, dtype, count=size // dtype.itemsize, offset=start).reshape(shape)
        start += size
    if start != len(data):
        raise ValueError(f"an answer has {len(data)} bytes; expected {start}")
    return found
