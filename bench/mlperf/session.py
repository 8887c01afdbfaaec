"""A system that is open for one scenario, and the tests that it is put to."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mlirt.serve.batching.batch_arrays import joined
from mlperf.answers import Check, Expected, checked, expected_answers
from mlperf.driver import Complete, Driver, GatheredByLength, GatheredQueries, QueriesByLength, WholeQueries
from mlperf.lengths import LONG_STEP, STEP, joined_by_length, padded_lengths
from mlperf.load import LoadSettings, Summary, read_answers, run_test
from mlperf.models import model_file, sampler
from mlperf.samples import SampleLibrary
from mlperf.systems import Request, System, opened
from mlperf.workloads import Array, Workload

_WARM_RUNS, _WARM_SECONDS = 30, 3.0
_MIN_BATCHES = 4
_SMALL_SIZES, _STEP = (1, 2, 4, 8, 16, 32), 32


@dataclass(frozen=True)
class Setup:
    """What is tested, and how.

    batch: the most samples of a batch, of Offline and Server; MultiStream has `streams` of them, SingleStream one.
    runs_at_once: batches that run at the same time, of Offline and Server. samples: how many the library has.
    delay: of `GatheredQueries`. heuristic: of `Request`.
    folder: models, plans and right answers are kept there.
    """

    workload: Workload
    system: str
    scenario: str
    folder: Path
    precision: str = "fp32"
    device: str = "cpu"
    threads: int = 1
    batch: int = 8
    streams: int = 8
    runs_at_once: int = 1
    samples: int = 16
    delay: float = 0.0
    heuristic: bool = False

    @property
    def rows(self) -> int:
        """The most samples of a batch."""
        return {"SingleStream": 1, "MultiStream": self.streams}.get(self.scenario, self.batch)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of rows that gathered batches have: a GPU has a graph for each of them, a processor takes any."""
        few = [size for size in _SMALL_SIZES if size < self.batch]
        more = range(_SMALL_SIZES[-1] + _STEP, self.batch, _STEP)
        return (*few, *more, self.batch) if self.device == "cuda" else tuple(range(1, self.batch + 1))

    @property
    def batches_at_once(self) -> int:
        """One in scenarios that send a query when the last one is answered."""
        return self.runs_at_once if self.scenario in ("Offline", "Server") else 1

    @property
    def is_gathered(self) -> bool:
        """Whether queries come one by one, so that batches have any number of rows."""
        return self.scenario == "Server"

    def logs(self, folder: Path, test: str) -> Path:
        """Where the logs of a test are kept, in the folder of all."""
        return folder / f"{self.workload.name}.{self.precision}.{self.device}" / self.system / self.scenario / test

    def request(self) -> Request:
        """What the system is opened with; the model is written where there is none."""
        fixed = None if self.is_gathered else self.rows
        model = model_file(self.workload, self.precision, fixed, self.folder, signed=self.device == "cuda")
        return Request(
            model,
            1 if self.is_gathered else self.rows,
            self.rows,
            self.device,
            "fp32" if self.device == "cpu" or self.precision == "fp32" else "fp16",
            self.threads,
            self.batches_at_once,
            self.folder,
            self.heuristic,
            self.workload.lengths,
        )


class Session:
    """An open system with its samples."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        request = setup.request()
        self.system: System = opened(setup.system, request)
        samples = sampler(setup.workload, request.model)
        self.library = SampleLibrary(samples, setup.samples, self.system.host_array)
        self.rate = self._warm()
        """Samples a second, roughly, of as many batches at once as there may be: by one thread, times those."""

    def _warm(self) -> float:
        """Run each size of a batch: what engines prepare and try in the first runs is done before the clock starts.

        As many batches at once as there may be, since each has memory of its own, which is slow at its first touch. The
        largest come first: what was prepared in memory that is outgrown has to be prepared again.
        """
        self.library.load([0])
        setup = self.setup
        most, gathered = setup.rows, setup.is_gathered
        with ThreadPoolExecutor(setup.batches_at_once) as threads:
            if setup.workload.lengths is None:
                usual = joined([self.library[0]], 1, most)
                others = (joined([self.library[0]], 1, rows) for rows in (setup.sizes[::-1] if gathered else ()))
            else:
                least, middle, longest = setup.workload.lengths
                usual = self._of_length(middle, most)
                lengths = padded_lengths(least, longest, LONG_STEP if gathered else STEP)[::-1]
                counts = setup.sizes[::-1] if gathered else (most,)
                others = (self._of_length(length, rows) for rows in counts for length in lengths)
            for feeds in others:
                self._least_time(threads, feeds, 0.0)
            return setup.batches_at_once * most / self._least_time(threads, usual, _WARM_SECONDS)

    def _of_length(self, length: int, rows: int) -> Mapping[str, Array]:
        """A batch that is as long, of the first sample's beginning."""
        sample = {name: array[:, :length] for name, array in self.library[0].items()}
        return joined_by_length([sample], rows, length, self.system.host_array)

    def _least_time(self, threads: ThreadPoolExecutor, feeds: Mapping[str, Array], seconds: float) -> float:
        """Of a batch, while others run beside it; the first runs do not count where there is time for more."""
        times = list[float]()

        def run(_: int) -> None:
            start = time.perf_counter()
            self.system.run(feeds)
            times.append(time.perf_counter() - start)

        begun = time.perf_counter()
        for number in range(_WARM_RUNS):
            list(threads.map(run, range(self.setup.batches_at_once)))
            if number and time.perf_counter() - begun > seconds:
                break
        return min(times)

    def measure(self, logs: Path, seconds: float, *, rate: float | None = None, latency: float = 0.1) -> Summary:
        """A performance test: its summary. `rate` and `latency` are those of Server; see `LoadSettings`."""
        load = LoadSettings(
            self.setup.scenario,
            seconds=seconds,
            rate=rate or self.rate,
            streams=self.setup.streams,
            latency=latency,
            queries=self._least_queries(),
        )
        return run_test(load, self.library, logs, self._driver)

    def _least_queries(self) -> int:
        """Of Offline its samples: some batches for each that runs at once, or the last ones would be most of it."""
        setup = self.setup
        return _MIN_BATCHES * setup.batches_at_once * setup.rows if setup.scenario == "Offline" else 1

    def check(self, logs: Path, expected: Mapping[int, Expected], *, rate: float | None = None) -> Check:
        """An accuracy test: every sample once, each answer held against what is expected of it."""
        load = LoadSettings(self.setup.scenario, accuracy=True, rate=rate or self.rate, streams=self.setup.streams)
        summary = run_test(load, self.library, logs, self._driver)
        return checked(summary.asked, read_answers(logs), expected, self.setup.workload.closeness)

    def _driver(self, complete: Complete) -> Driver:
        setup = self.setup
        lengths = setup.workload.lengths
        if setup.is_gathered:
            gathered = self.library, self.system, complete, setup.sizes, setup.delay
            return GatheredQueries(*gathered) if lengths is None else GatheredByLength(*gathered, lengths[2])
        if lengths is not None:
            return QueriesByLength(self.library, self.system, complete, setup.rows, lengths[2])
        return WholeQueries(self.library, self.system, complete, setup.rows, is_fixed=True)

    def close(self) -> None:
        """Let go of the system."""
        self.system.close()


def expected_of(setup: Setup, bound: float | None = None) -> dict[int, Expected]:
    """What is expected of the answers to a setup's samples."""
    is_signed = setup.device == "cuda"
    samples = setup.samples
    return expected_answers(setup.workload, setup.precision, samples, setup.folder, signed=is_signed, bound=bound)
