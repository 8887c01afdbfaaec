"""rt-exec: builds an engine from an ONNX model or loads a plan, runs it, measures; flags and output are trtexec's."""

from __future__ import annotations

import json
import shlex
import statistics
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.builder.progress_bar import ProgressBar
from mlirt.errors import InvalidInputError, MlirtError
from mlirt.tools.flag_values import Shape
from mlirt.tools.int8_build import int8_options, precision_of
from mlirt.tools.output_files import check_output
from mlirt.tools.phase_times import PhaseTimes
from mlirt.tools.rt_exec_arguments import parse_arguments
from mlirt.version import __version__

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.device import RunTimes
    from mlirt.runtime.engine import EngineLike, TensorDescription

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_PROFILED_RUNS = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0 or 1, and 130 where the user interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    banner = f"mlirt.rt_exec [mlirt v{__version__}] # rt-exec {shlex.join(arguments)}"
    if "--help" in arguments or "-h" in arguments:
        return _help()
    print(f"&&&& RUNNING {banner}", flush=True)
    code = _guarded(arguments)
    print(f"&&&& {'FAILED' if code else 'PASSED'} {banner}", flush=True)
    return code


def _help() -> int:
    try:
        parse_arguments(["--help"])
    except SystemExit:
        pass
    return 0


def _guarded(arguments: list[str]) -> int:
    """Run, and turn every failure into one line."""
    try:
        _run(parse_arguments(arguments))
        return 0
    except KeyboardInterrupt:
        log("E", "interrupted")
        return 130
    except Exception as error:
        log("E", _one_line(error))
        if "--verbose" in arguments:
            traceback.print_exc()
        return 1


def _one_line(error: Exception) -> str:
    if isinstance(error, MlirtError):
        return " ".join(str(error).split())
    if isinstance(error, OSError):
        return f"{error.filename or 'file'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}; smaller --shapes take less"
    return f"internal error: {type(error).__name__}: {' '.join(str(error).split())} (--verbose shows where)"


def log(severity: str, text: str) -> None:
    """One line as trtexec prints it; errors and warnings of severity E go to standard error."""
    stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
    print(f"[{stamp}] [{severity}] {text}", file=sys.stderr if severity == "E" else sys.stdout, flush=True)


def log_all(severity: str, lines: Sequence[str]) -> None:
    """Several lines."""
    for line in lines:
        log(severity, line)


_WRITTEN = ("saveEngine", "calibReport", "exportOutput", "exportTimes", "exportProfile", "exportLayerInfo")


def _run(arguments: Namespace) -> None:
    log_all("W", arguments.without_effect)
    for flag in _WRITTEN:
        check_output(getattr(arguments, flag), flag)
    engine = _load(arguments) if arguments.loadEngine else _build(arguments)
    if arguments.saveEngine:
        engine.save(arguments.saveEngine)
        log("I", f"Saved the engine to {arguments.saveEngine} ({Path(arguments.saveEngine).stat().st_size} bytes)")
    if arguments.timeDeserialize:
        _time_loading(arguments)
        return
    _report_layers(engine, arguments)
    if arguments.buildOnly:
        log("I", "Skipped inference phase since --buildOnly is added.")
        return
    _infer(engine, arguments)


def _time_loading(arguments: Namespace) -> None:
    """The median time of opening the plan again."""
    from mlirt.runtime.engine import load

    path = arguments.loadEngine or arguments.saveEngine
    times: list[float] = []
    for _ in range(max(1, arguments.iterations)):
        start = time.perf_counter()
        load(path)
        times.append((time.perf_counter() - start) * 1e3)
    log("I", f"Total deserialization time is {statistics.median(times):g} milliseconds.")


def _load(arguments: Namespace) -> EngineLike:
    from mlirt.runtime.engine import load

    start = time.perf_counter()
    engine = load(arguments.loadEngine)
    log("I", f"Engine loaded in {time.perf_counter() - start:g} sec.")
    return engine


def _build(arguments: Namespace) -> EngineLike:
    from mlirt.builder.compile import compile as build
    from mlirt.builder.host import gpu_is_here
    from mlirt.builder.tactics.tactic_sources import sources_of_flag

    if not Path(arguments.onnx).is_file():
        what = "that is a folder" if Path(arguments.onnx).is_dir() else "there is no such file"
        raise InvalidInputError(f"--onnx={arguments.onnx}: {what}")
    if arguments.target == "cuda" and not arguments.buildOnly:
        if not gpu_is_here():
            raise InvalidInputError("--target=cuda: there is no GPU to run on; --buildOnly builds for another machine")
    start = time.perf_counter()
    bar = ProgressBar()
    progress = PhaseTimes(_logged(bar) if arguments.verbose else bar)
    profiles = _profiles(arguments)
    try:
        int8 = int8_options(arguments, profiles, progress, log)
        options = int8 | _asked_precisions(arguments, int8)
        if arguments.refit:
            options["refittable"] = True
        engine = build(
            arguments.onnx,
            arguments.target,
            precision_of(arguments),
            profiles or None,
            progress=progress,
            timing_cache=arguments.timingCacheFile,
            heuristic=arguments.heuristic,
            avg_timing_iterations=arguments.avgTiming,
            min_timing_iterations=arguments.minTiming,
            tactic_sources=sources_of_flag(arguments.tacticSources) if arguments.tacticSources else (),
            **options,
        )
        progress.close()
    finally:
        bar.close()
    log("I", f"Engine built in {time.perf_counter() - start:g} sec.")
    if arguments.verbose:
        log("V", f"Phases of the build: {progress.line()}")
    return engine


def _asked_precisions(arguments: Namespace, int8: Mapping[str, Any]) -> dict[str, Any]:
    """What layers shall compute in, those that --accuracyTarget keeps in float among them, and whether they must."""
    kept: dict[str, str] = int8.get("layer_precisions", {})
    if arguments.layerPrecisions and arguments.precisionConstraints == "none":
        log("W", "--layerPrecisions is ignored without --precisionConstraints=prefer or --precisionConstraints=obey.")
        return {}
    asked = {**arguments.layerPrecisions, **kept}
    options: dict[str, Any] = {"layer_precisions": asked} if asked else {}
    return options | ({"obey_layer_precisions": True} if arguments.precisionConstraints == "obey" else {})


def _logged(bar: ProgressBar) -> Callable[[str, int, int], None]:
    def progress(text: str, done: int, total: int) -> None:
        log("V", f"[{done}/{total}] {text}")
        bar(text, done, total)

    return progress


def _profiles(arguments: Namespace) -> dict[str, tuple[Shape, Shape, Shape]]:
    """(min, opt, max) by input; inputs of --shapes alone have just that shape, as with trtexec."""
    smallest, usual, largest = arguments.minShapes, arguments.optShapes, arguments.maxShapes
    found: dict[str, tuple[Shape, Shape, Shape]] = {}
    for name in sorted({*smallest, *usual, *largest}):
        if name not in smallest or name not in largest:
            raise InvalidInputError(f"input {name!r} needs a shape in both --minShapes and --maxShapes")
        best = usual.get(name, arguments.shapes.get(name, largest[name]))
        found[name] = (smallest[name], best, largest[name])
    return found or {name: (shape, shape, shape) for name, shape in arguments.shapes.items()}


def _report_layers(engine: EngineLike, arguments: Namespace) -> None:
    if not (arguments.dumpLayerInfo or arguments.exportLayerInfo):
        return
    from mlirt.runtime.layer_records import inspected
    from mlirt.tools.layer_report import layer_lines

    bindings = [tensor.name for tensor in (*engine.inputs, *engine.outputs)]
    report = inspected(engine.layers, bindings, arguments.profilingVerbosity)
    if arguments.dumpLayerInfo:
        log_all("I", ["Layer Information:", *layer_lines(report)])
    if arguments.exportLayerInfo:
        _write_json(arguments.exportLayerInfo, report)


def _write_json(path: str, value: object) -> None:
    _write(path, json.dumps(value, indent=1).encode())


def _write(path: str, data: bytes) -> None:
    from mlirt.runtime.atomic_file import write_atomically

    write_atomically(Path(path), [data])


def _infer(engine: EngineLike, arguments: Namespace) -> None:
    from mlirt.tools.tensor_files import output_lines, outputs_file, read_inputs

    feeds = read_inputs(engine.inputs, _run_shapes(engine, arguments), arguments.loadInputs)
    outputs = engine.run(feeds)
    _measure(engine, feeds, arguments)
    if arguments.dumpOutput:
        log_all("I", output_lines(outputs))
    if arguments.exportOutput:
        _write(arguments.exportOutput, outputs_file(outputs, arguments.exportOutput))
    if arguments.dumpProfile or arguments.exportProfile:
        _profile(engine, feeds, arguments)


def _run_shapes(engine: EngineLike, arguments: Namespace) -> dict[str, Shape]:
    """The shape of each input: as given, as in its .npy file, the profile's usual one, or 1 for what is left open."""
    from mlirt.tools.tensor_files import npy_shapes

    names = [tensor.name for tensor in engine.inputs]
    for name in arguments.shapes:
        if name not in names:
            raise InvalidInputError(f"--shapes: the engine has no input {name!r}; its inputs are {names}")
    usual = {name: shapes[1] for name, shapes in _profiles(arguments).items()}
    known = {**usual, **npy_shapes(arguments.loadInputs), **arguments.shapes}
    return {tensor.name: known.get(tensor.name) or _default_shape(tensor) for tensor in engine.inputs}


def _default_shape(tensor: TensorDescription) -> Shape:
    if all(isinstance(dim, int) for dim in tensor.shape):
        return tuple(int(dim) for dim in tensor.shape)
    if not all(isinstance(dim, int) or dim.isidentifier() for dim in tensor.shape):
        raise InvalidInputError(f"input {tensor.name!r} has shape {tensor.shape}: give the shape to run with --shapes")
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in tensor.shape)
    chosen = "x".join(map(str, shape))
    log("W", f"Dynamic dimensions required for input: {tensor.name}, but no shapes were provided.")
    log("W", f"Automatically overriding shape to: {chosen}")
    return shape


def _measure(engine: EngineLike, feeds: Mapping[str, Array], arguments: Namespace) -> None:
    from mlirt.tools.timing_report import advice_lines, average_lines, summary_lines, times_json

    once = _timed_run(engine, feeds, arguments.noDataTransfers)
    _repeat(once, 0, arguments.warmUp / 1e3, 0)
    runs = _repeat(once, arguments.iterations, arguments.duration, arguments.sleepTime / 1e3)
    if arguments.exportTimes:
        _write_json(arguments.exportTimes, times_json(runs))
    if not runs:
        log("W", "No runs were measured: --iterations and --duration are 0.")
        return
    log_all("I", ["=== Trace details ===", *average_lines(runs, arguments.avgRuns), "=== Performance summary ==="])
    log_all("I", summary_lines(runs, arguments.percentile))
    on_gpu = getattr(engine, "target", "") == "cuda"
    if arguments.useCudaGraph and not on_gpu:
        log("W", "--useCudaGraph has no effect: this engine does not run on CUDA.")
    if on_gpu:
        log_all("W", advice_lines(runs))


def _timed_run(engine: EngineLike, feeds: Mapping[str, Array], resident: bool) -> Callable[[], RunTimes]:
    """What one measured run is; an engine without contexts (the reference) is timed as a whole."""
    from mlirt.runtime.device import RunTimes
    from mlirt.runtime.engine import Engine

    if isinstance(engine, Engine):
        context = engine.context
        return context.run_resident(feeds).execute if resident else lambda: context.run_timed(feeds)[1]

    def whole() -> RunTimes:
        start = time.perf_counter() * 1e3
        engine.run(feeds)
        end = time.perf_counter() * 1e3
        return RunTimes(start, start, start, start, start, end, end, end)

    return whole


def _repeat(once: Callable[[], RunTimes], count: int, seconds: float, pause: float) -> list[RunTimes]:
    """At least `count` runs and at least `seconds`."""
    runs: list[RunTimes] = []
    start = time.perf_counter()
    while len(runs) < count or time.perf_counter() - start < seconds:
        runs.append(once())
        if pause:
            time.sleep(pause)
    return runs


def _profile(engine: EngineLike, feeds: Mapping[str, Array], arguments: Namespace) -> None:
    from mlirt.tools.layer_report import profile_json, profile_lines

    records = profile_json([engine.profile(feeds) for _ in range(max(1, min(arguments.iterations, _PROFILED_RUNS)))])
    if arguments.dumpProfile:
        log_all("I", profile_lines(records))
    if arguments.exportProfile:
        _write_json(arguments.exportProfile, records)


if __name__ == "__main__":
    sys.exit(main())
