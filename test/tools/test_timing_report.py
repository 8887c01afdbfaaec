"""The arithmetic of the metrics, on time stamps made by hand (tensorrt-features.md#30.7 to 30.10)."""

import pytest

from mlirt.runtime.device import RunTimes
from mlirt.tools import timing_report as report


def run(start: float, enqueue: float = 0.1, h2d: float = 1, compute: float = 2, d2h: float = 0.5) -> RunTimes:
    a, b = start + h2d, start + h2d + compute
    return RunTimes(start, start + enqueue, start, a, a, b, b, b + d2h)


def test_summary() -> None:
    runs = [run(0), run(4), run(8, compute=4)]
    assert report.summary_lines(runs, (90, 99)) == [
        "Throughput: 222.222 qps",
        "Latency: min = 3.5 ms, max = 5.5 ms, mean = 4.16667 ms, median = 3.5 ms, "
        "percentile(90%) = 5.5 ms, percentile(99%) = 5.5 ms",
        "Enqueue Time: min = 0.1 ms, max = 0.1 ms, mean = 0.1 ms, median = 0.1 ms, "
        "percentile(90%) = 0.1 ms, percentile(99%) = 0.1 ms",
        "H2D Latency: min = 1 ms, max = 1 ms, mean = 1 ms, median = 1 ms, "
        "percentile(90%) = 1 ms, percentile(99%) = 1 ms",
        "GPU Compute Time: min = 2 ms, max = 4 ms, mean = 2.66667 ms, median = 2 ms, "
        "percentile(90%) = 4 ms, percentile(99%) = 4 ms",
        "D2H Latency: min = 0.5 ms, max = 0.5 ms, mean = 0.5 ms, median = 0.5 ms, "
        "percentile(90%) = 0.5 ms, percentile(99%) = 0.5 ms",
        "Total Host Walltime: 0.0135 s",
        "Total GPU Compute Time: 0.008 s",
    ]


def test_the_same_as_numbers() -> None:
    found = report.metrics([run(0), run(4), run(8, compute=4)], (90,))
    assert set(found) == {
        *("runs", "throughput", "latency", "enqueue_time", "h2d_latency", "gpu_compute_time", "d2h_latency")
    }
    assert found["runs"] == 3
    assert found["throughput"] == pytest.approx(222.222, rel=1e-5)
    assert found["gpu_compute_time"] == {
        "min": 2,
        "max": 4,
        "mean": pytest.approx(8 / 3),
        "median": 2,
        "percentile(90%)": 4,
    }


@pytest.mark.parametrize(("share", "value"), [(0, 0), (50, 49), (90, 89), (99, 98), (100, 99)])
def test_percentile(share: float, value: float) -> None:
    assert report.percentile([float(i) for i in range(100)], share) == pytest.approx(value, abs=1)


def test_averages() -> None:
    assert report.average_lines([run(0), run(4, compute=4), run(9)], 2) == [
        "Trace averages of 2 runs:",
        "Average on 2 runs - GPU latency: 3 ms - Host latency: 4.5 ms (enqueue 0.1 ms)",
    ]
    assert report.average_lines([run(0)], 0) == []


def test_advice_about_a_slow_host() -> None:
    steady = [run(i * 5.0) for i in range(10)]
    assert report.advice_lines(steady) == []
    slow = [run(i * 5.0, enqueue=1.7) for i in range(10)]
    assert tuple(report.advice_lines(slow)) == report.ENQUEUE_BOUND
    loaded = report.advice_lines([run(i * 9.0, h2d=3) for i in range(10)])
    assert loaded[0].startswith("* Throughput may be bound by H2D Latency rather than GPU Compute")
    assert "--noDataTransfers" in loaded[1]
    shaky = report.advice_lines([run(i * 9.0, compute=2 + i % 2) for i in range(10)])
    assert shaky[0] == "* GPU compute time is unstable, with coefficient of variance = 20%."
