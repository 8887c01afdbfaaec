"""What rt-exec says about the times of many runs: trtexec's lines, warnings and JSON, from the time stamps alone."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from mlirt.runtime.device import RunTimes

ENQUEUE_BOUND = (
    "* Throughput may be bound by Enqueue Time rather than GPU Compute and the GPU may be under-utilized.",
    "  If not already in use, --useCudaGraph (utilize CUDA graphs where possible) may increase the throughput.",
)
_TRANSFER_BOUND = (
    "* Throughput may be bound by {0} rather than GPU Compute and the GPU may be under-utilized.",
    "  Add --noDataTransfers flag to disable data transfers.",
)
_UNSTABLE = (
    "* GPU compute time is unstable, with coefficient of variance = {0:g}%.",
    "  If not already in use, locking GPU clock frequency or adding --useSpinWait may improve the stability.",
)


def h2d(run: RunTimes) -> float:
    """Milliseconds of bringing the inputs."""
    return run.end_h2d - run.start_h2d


def compute(run: RunTimes) -> float:
    """Milliseconds of the kernels."""
    return run.end_compute - run.start_compute


def d2h(run: RunTimes) -> float:
    """Milliseconds of fetching the outputs."""
    return run.end_d2h - run.start_d2h


def enqueue(run: RunTimes) -> float:
    """Milliseconds that the host spent on giving the work."""
    return run.end_enqueue - run.start_enqueue


def latency(run: RunTimes) -> float:
    """The three stages together."""
    return h2d(run) + compute(run) + d2h(run)


_METRICS: tuple[tuple[str, Callable[[RunTimes], float]], ...] = (
    ("Latency", latency),
    ("Enqueue Time", enqueue),
    ("H2D Latency", h2d),
    ("GPU Compute Time", compute),
    ("D2H Latency", d2h),
)


def percentile(ordered: Sequence[float], share: float) -> float:
    """As trtexec finds it: the largest of the sorted values that leaves (100 - share) % above it."""
    excluded = int((1 - share / 100) * len(ordered))
    return ordered[max(len(ordered) - 1 - excluded, 0)]


def metric_line(name: str, values: Sequence[float], shares: Sequence[float]) -> str:
    """`Latency: min = 1 ms, max = 2 ms, mean = .., median = .., percentile(90%) = .. ms`."""
    return f"{name}: " + ", ".join(f"{key} = {value:g} ms" for key, value in _parts(sorted(values), shares))


def metrics(runs: Sequence[RunTimes], shares: Sequence[float]) -> dict[str, object]:
    """The same as numbers by name: queries a second, and milliseconds of each of trtexec's metrics."""
    seconds = walltime_seconds(runs)
    found: dict[str, object] = {"runs": len(runs), "throughput": len(runs) / seconds if seconds > 0 else 0.0}
    for name, value in _METRICS:
        found[name.lower().replace(" ", "_")] = dict(_parts(sorted(map(value, runs)), shares))
    return found


def _parts(ordered: Sequence[float], shares: Sequence[float]) -> Iterator[tuple[str, float]]:
    """The numbers of a metric by trtexec's names."""
    yield "min", ordered[0]
    yield "max", ordered[-1]
    yield "mean", statistics.fmean(ordered)
    yield "median", statistics.median(ordered)
    yield from ((f"percentile({share:g}%)", percentile(ordered, share)) for share in shares)


def walltime_seconds(runs: Sequence[RunTimes]) -> float:
    """From the start of the first run to the end of the last one; runs of several streams overlap."""
    return (max(run.end_d2h for run in runs) - min(run.start_h2d for run in runs)) / 1e3


def average_lines(runs: Sequence[RunTimes], size: int) -> list[str]:
    """One line for each `size` runs."""
    lines = [f"Trace averages of {size} runs:"] if size else []
    for start in range(0, len(runs) - size + 1, size) if size else ():
        part = runs[start : start + size]
        lines.append(
            f"Average on {size} runs - GPU latency: {statistics.fmean(map(compute, part)):g} ms"
            f" - Host latency: {statistics.fmean(map(latency, part)):g} ms"
            f" (enqueue {statistics.fmean(map(enqueue, part)):g} ms)"
        )
    return lines


def summary_lines(runs: Sequence[RunTimes], shares: Sequence[float]) -> list[str]:
    """Throughput, the five metrics, the totals."""
    seconds = walltime_seconds(runs)
    return [
        f"Throughput: {len(runs) / seconds if seconds > 0 else 0.0:g} qps",
        *(metric_line(name, list(map(value, runs)), shares) for name, value in _METRICS),
        f"Total Host Walltime: {seconds:g} s",
        f"Total GPU Compute Time: {sum(map(compute, runs)) / 1e3:g} s",
    ]


def advice_lines(runs: Sequence[RunTimes]) -> list[str]:
    """Warnings about what limits a run on a GPU, and about unstable times."""
    times = list(map(compute, runs))
    median = statistics.median(times)
    lines: list[str] = []
    if statistics.median(map(enqueue, runs)) > 0.8 * median:
        lines += ENQUEUE_BOUND
    for name, stage in (("H2D Latency", h2d), ("D2H Latency", d2h)):
        if statistics.median(map(stage, runs)) >= median:
            lines += [text.format(name) for text in _TRANSFER_BOUND]
    mean = statistics.fmean(times)
    variance = statistics.pstdev(times) / mean * 100 if mean > 0 else 0.0
    if variance > 1:
        lines += [text.format(variance) for text in _UNSTABLE]
    return lines


def times_json(runs: Sequence[RunTimes]) -> list[dict[str, float]]:
    """One record per run, in milliseconds since the first."""
    zero = min((min(run.start_enqueue, run.start_h2d) for run in runs), default=0.0)
    return [
        {
            "startEnqMs": run.start_enqueue - zero,
            "endEnqMs": run.end_enqueue - zero,
            "startH2dMs": run.start_h2d - zero,
            "endH2dMs": run.end_h2d - zero,
            "startComputeMs": run.start_compute - zero,
            "endComputeMs": run.end_compute - zero,
            "startD2hMs": run.start_d2h - zero,
            "endD2hMs": run.end_d2h - zero,
            "h2dMs": h2d(run),
            "computeMs": compute(run),
            "d2hMs": d2h(run),
            "latencyMs": latency(run),
        }
        for run in runs
    ]
