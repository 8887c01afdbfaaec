"""The time of every kernel of a replayed CUDA graph, from the trace that PyTorch's profiler writes."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def kernel_times(
    call: Callable[[], object], wait: Callable[[], None], launches: int, repeats: int
) -> list[float] | None:
    """Median microseconds of each of the `launches` kernels that `call` queues; None where the trace has others."""
    from torch.profiler import ProfilerActivity, profile

    call()
    wait()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recording:
        for _ in range(repeats):
            call()
        wait()
    with tempfile.TemporaryDirectory(prefix="mlirt-trace-") as folder:
        path = Path(folder) / "trace.json"
        recording.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return medians(events, launches)


def medians(events: Sequence[Mapping[str, Any]], launches: int) -> list[float] | None:
    """Microseconds by place in the run, of a trace of whole runs of so many kernels."""
    kernels = sorted((one for one in events if one.get("cat") == "kernel"), key=lambda one: float(one["ts"]))
    if not launches or not kernels or len(kernels) % launches:
        return None
    runs = [kernels[start : start + launches] for start in range(0, len(kernels), launches)]
    if any([one["name"] for one in run] != [one["name"] for one in runs[0]] for run in runs):
        return None
    return [statistics.median(float(one["dur"]) for one in column) for column in zip(*runs, strict=True)]
