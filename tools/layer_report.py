"""What rt-exec says about the layers of an engine: the inspector's records, and the time that each layer takes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import cast


def layer_lines(report: Mapping[str, object]) -> list[str]:
    """The same as text, a layer a line."""
    layers, bindings = cast("list[object]", report["Layers"]), cast("list[str]", report["Bindings"])
    return ["Layers:", *(f"  {_one_line(layer)}" for layer in layers), "Bindings:", *(f"  {name}" for name in bindings)]


def _one_line(layer: object) -> str:
    if isinstance(layer, dict):
        return ", ".join(f"{key}: {value}" for key, value in cast("dict[str, object]", layer).items())
    return str(layer)


def profile_json(profiles: Sequence[Sequence[tuple[str, float]]]) -> list[dict[str, object]]:
    """trtexec's form: the number of runs, then a record per launch, in the order of the run.

    Percentages are those of the medians: one run that another process disturbed says nothing about a launch.
    """
    medians = [statistics.median(ms for _, ms in launch) for launch in zip(*profiles, strict=True)]
    total = sum(medians)
    records: list[dict[str, object]] = [{"count": len(profiles)}]
    for i, (name, _) in enumerate(profiles[0]):
        times = [profile[i][1] for profile in profiles]
        lower, upper = _quartiles(times)
        records.append(
            {
                "name": name,
                "timeMs": sum(times),
                "averageMs": statistics.fmean(times),
                "medianMs": medians[i],
                "lowerQuartileMs": lower,
                "upperQuartileMs": upper,
                "minMs": min(times),
                "maxMs": max(times),
                "percentage": medians[i] / total * 100 if total else 0.0,
            }
        )
    return records


def _quartiles(times: Sequence[float]) -> tuple[float, float]:
    """Half of the runs took a time between these."""
    if len(times) < 2:
        return times[0], times[0]
    lower, _, upper = statistics.quantiles(times, n=4, method="inclusive")
    return lower, upper


def profile_lines(records: Sequence[Mapping[str, object]]) -> list[str]:
    """The same as a table that ends with the totals."""
    count, *layers = records
    width = max([len(str(layer["name"])) for layer in layers] + [len("Layer")])
    lines = [
        f"=== Profile ({count['count']} iterations ) ===",
        f"{'Layer':>{width}}   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %",
    ]
    keys = ("timeMs", "averageMs", "medianMs", "percentage")
    totals = {key: sum(float(str(layer[key])) for layer in layers) for key in keys}
    for layer in [*layers, {"name": "Total", **totals}]:
        time, average, median, share = (float(str(layer[key])) for key in keys)
        lines.append(f"{layer['name']!s:>{width}}   {time:9.2f}   {average:14.4f}   {median:16.4f}   {share:6.1f}")
    return lines


def profile_styles(records: Sequence[Mapping[str, object]]) -> list[str]:
    """The style of each line of the table: layers that take a fifth of the time, and a twentieth of it, stand out."""
    shares = [float(str(layer["percentage"])) for layer in records[1:]]
    rows = ["red" if share >= 20 else "yellow" if share >= 5 else "" for share in shares]
    return ["bold", "bold", *rows, "bold"]
