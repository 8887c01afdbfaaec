"""How rt-exec runs an engine: inputs, measured runs, outputs and the times of layers."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.atomic_file import write_file
from mlirt.tools.debug_tensors import report_debug_tensors
from mlirt.tools.exec_feeds import feeds_of
from mlirt.tools.exec_report import write_report
from mlirt.tools.number_range import report_outputs
from mlirt.tools.output_files import write_json
from mlirt.tools.rt_exec_streams import OneByOne, Runs, repeat_side_by_side
from mlirt.tools.trtexec_log import log, log_all, note

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.context import ExecutionContext
    from mlirt.runtime.engine import Engine
    from mlirt.runtime.engine_interface import EngineLike
    from mlirt.tools.report.build_recorder import BuildRecorder

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_PROFILED_RUNS = 10


def infer(engine: EngineLike, arguments: Namespace, recorder: BuildRecorder | None = None) -> None:
    """Run an engine on the inputs that the flags give, measure it, and report what they ask for; `recorder` watched
    its build.
    """
    from mlirt.tools.tensor_files import output_lines, outputs_file

    feeds = feeds_of(engine, arguments)
    outputs = engine.run(feeds)
    _measure(engine, feeds, arguments)
    if arguments.dumpOutput:
        log_all("I", output_lines(outputs))
    if arguments.exportOutput:
        write_file(arguments.exportOutput, [outputs_file(outputs, arguments.exportOutput)])
    if arguments.dumpProfile or arguments.exportProfile or arguments.report:
        records = _profile(engine, feeds, arguments)
        if arguments.report:
            write_report(engine, arguments, recorder, records, feeds)
    report_outputs(engine, arguments, feeds, outputs)
    report_debug_tensors(engine, arguments, feeds)


def _measure(engine: EngineLike, feeds: Mapping[str, Array], arguments: Namespace) -> None:
    from mlirt.tools.timing_report import advice_lines, average_lines, metrics, summary_lines, times_json

    each = _timed_runs(engine, feeds, arguments.streams, arguments.noDataTransfers)
    repeat_side_by_side(each, 0, arguments.warmUp / 1e3, 0)
    runs = repeat_side_by_side(each, arguments.iterations, arguments.duration, arguments.sleepTime / 1e3)
    if arguments.exportTimes:
        write_json(arguments.exportTimes, times_json(runs))
    if not runs:
        log("W", "No runs were measured: --iterations and --duration are 0.")
        return
    log_all("I", ["=== Trace details ===", *average_lines(runs, arguments.avgRuns), "=== Performance summary ==="])
    log_all("I", summary_lines(runs, arguments.percentile))
    note("performance", metrics(runs, arguments.percentile))
    on_gpu = getattr(engine, "target", "") == "cuda"
    if arguments.useCudaGraph:
        _warn_of_graphs(engine, on_gpu)
    if on_gpu:
        log_all("W", advice_lines(runs))


_NOT_IN_A_GRAPH = (
    "The built TensorRT engine contains operations that are not permitted under CUDA graph capture mode.",
    "The specified --useCudaGraph flag has been ignored. "
    "The inference will be launched without using CUDA graph launch.",
)
"""trtexec's words (tensorrt-features.md#30.12)."""


def _warn_of_graphs(engine: EngineLike, on_gpu: bool) -> None:
    """Say where a run is not one CUDA graph, though it was asked for."""
    from mlirt.runtime.engine import Engine

    if not on_gpu:
        log("W", "--useCudaGraph has no effect: this engine does not run on CUDA.")
    elif isinstance(engine, Engine) and not engine.is_one_graph:
        log_all("W", _NOT_IN_A_GRAPH)


def _timed_runs(engine: EngineLike, feeds: Mapping[str, Array], streams: int, resident: bool) -> list[Runs]:
    """What the measured runs of each stream are; an engine without contexts (the reference) is timed as a whole."""
    from mlirt.runtime.device import RunTimes
    from mlirt.runtime.engine import Engine

    def whole() -> RunTimes:
        start = time.perf_counter() * 1e3
        engine.run(feeds)
        end = time.perf_counter() * 1e3
        return RunTimes(start, start, start, start, start, end, end, end)

    if not isinstance(engine, Engine):
        return [OneByOne(whole)] * streams
    packed = engine.packed(feeds)
    contexts = [engine.context, *(engine.create_execution_context() for _ in range(streams - 1))]
    return [_timed_run(engine, context, packed, resident) for context in contexts]


def _timed_run(engine: Engine, context: ExecutionContext, feeds: Mapping[str, Array], resident: bool) -> Runs:
    """On a GPU the next run is queued before one is waited for, where there is memory for a second context."""
    if context.can_run_ahead:
        from mlirt.errors import OutOfMemoryError
        from mlirt.runtime.driver_interface import DeviceError
        from mlirt.runtime.run_ahead import RunAhead

        try:
            return RunAhead([context, engine.create_execution_context()], feeds, resident=resident)
        except (DeviceError, OutOfMemoryError) as error:
            log("W", f"No run is queued ahead of another, as there is no memory for a second context: {error}")
    return OneByOne(context.run_resident(feeds).execute if resident else lambda: context.run_timed(feeds)[1])


def _profile(engine: EngineLike, feeds: Mapping[str, Array], arguments: Namespace) -> Sequence[Mapping[str, object]]:
    from mlirt.runtime.loop_times import times_of_launches
    from mlirt.tools.layer_report import profile_json, profile_lines, profile_styles

    engine.profile(feeds)  # the first run launch by launch is slower than those after it
    runs = [engine.profile(feeds) for _ in range(max(1, min(arguments.iterations, _PROFILED_RUNS)))]
    records = profile_json([times_of_launches(run, engine.layers) for run in runs])
    if arguments.dumpProfile:
        for line, style in zip(profile_lines(records), profile_styles(records), strict=True):
            log("I", line, style)
        note("profile", records)
    if arguments.exportProfile:
        write_json(arguments.exportProfile, records)
    return records
