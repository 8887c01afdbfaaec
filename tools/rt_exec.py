"""rt-exec: builds an engine from an ONNX model or loads a plan, runs it, measures; flags and output are trtexec's."""

from __future__ import annotations

import shlex
import statistics
import sys
import tempfile
import time
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mlirt.builder.progress_bar import ProgressBar
from mlirt.command_line import reader_has_gone
from mlirt.errors import InvalidInputError, MlirtError, missing_package
from mlirt.tools.build_settings import settings_without_effect
from mlirt.tools.exec_config import asked_precisions, config_of
from mlirt.tools.exec_report import both, recorder_for, write_report
from mlirt.tools.int8_build import int8_options
from mlirt.tools.model_check import check_model
from mlirt.tools.number_range import report_range
from mlirt.tools.output_files import check_folder, check_output, write_json
from mlirt.tools.phase_times import PhaseTimes
from mlirt.tools.plugin_files import run_plugin_files
from mlirt.tools.refit_report import refit_lines, refit_time_line
from mlirt.tools.research_flags import asked_remarks, pass_plugins, report_remarks
from mlirt.tools.rt_exec_arguments import parse_arguments
from mlirt.tools.rt_exec_device import choose_device
from mlirt.tools.rt_exec_profiles import profiles_of
from mlirt.tools.rt_exec_runs import infer
from mlirt.tools.tool_main import unforeseen
from mlirt.tools.trtexec_log import banner, cautions, log, log_all, note, told_as
from mlirt.version import __version__

if TYPE_CHECKING:
    import onnx

    from mlirt.runtime.engine_interface import EngineLike
    from mlirt.tools.report.build_recorder import BuildRecorder


_TITLE = f"mlirt.rt_exec [mlirt v{__version__}] # rt-exec"


def main(argv: Sequence[str] | None = None, title: str = _TITLE) -> int:
    """Run the tool; the result is the exit code: 0 or 1, and 130 where the user interrupted.

    The first and the last line have the title and the arguments.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if any(one in ("--help", "-h") or one.startswith("--print-completion") for one in arguments):
        return _answer_about_flags(arguments)
    try:
        with told_as(quiet="--quiet" in arguments, as_json="--json" in arguments):
            return _announced(f"{title} {shlex.join(arguments)}", arguments)
    except BrokenPipeError:
        return reader_has_gone()


def _announced(what: str, arguments: list[str]) -> int:
    banner(f"&&&& RUNNING {what}")
    with cautions() as found:
        code = _guarded(arguments)
    warning = f" # WARNING: {'; '.join(found)}" if found else ""
    note("outcome", "failed" if code else "passed")
    banner(f"&&&& {'FAILED' if code else 'PASSED'} {what}{warning}")
    return code


def _answer_about_flags(arguments: list[str]) -> int:
    try:
        parse_arguments(["--help"] if "--help" in arguments or "-h" in arguments else arguments)
    except SystemExit:
        pass
    except MlirtError as error:
        log("E", _one_line(error))
        return 1
    return 0


def _guarded(arguments: list[str]) -> int:
    """Run, and turn every failure into one line."""
    try:
        _run(parse_arguments(arguments))
        return 0
    except KeyboardInterrupt:
        log("E", "interrupted")
        return 130
    except BrokenPipeError:
        raise  # the reader of the output has ended
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
    if isinstance(error, ModuleNotFoundError):
        return str(missing_package("rt-exec", error))
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}; smaller --shapes take less"
    return unforeseen(error)


_WRITTEN = (
    "saveEngine", "timingCacheFile", "calibReport", "exportOutput", "exportTimes", "exportProfile", "exportLayerInfo",
    "remarks_output", "report",
)  # fmt: skip


def _run(arguments: Namespace) -> None:
    log_all("W", [*arguments.without_effect, *settings_without_effect(arguments)])
    if isinstance(arguments.device, int):
        choose_device(arguments.device)
    run_plugin_files(arguments, lambda text: log("W", text))
    with pass_plugins(arguments, lambda text: log("W", text)):
        if arguments.checkOnly:
            check_model(arguments)
        else:
            _build_and_infer(arguments)


def _build_and_infer(arguments: Namespace) -> None:
    for flag in _WRITTEN:
        if flag != "timingCacheFile" or not _is_shared(arguments.timingCacheFile):
            check_output(getattr(arguments, flag), flag.replace("_", "-"))
    recorder = None if arguments.loadEngine else recorder_for(arguments, asked_remarks(arguments))
    engine = _load(arguments) if arguments.loadEngine else _build(arguments, recorder)
    if arguments.saveEngine:
        engine.save(arguments.saveEngine)
        log("I", f"Saved the engine to {arguments.saveEngine} ({Path(arguments.saveEngine).stat().st_size} bytes)")
    if arguments.exportTriton:
        _export_triton(engine, arguments)
    if arguments.exportC:
        _export_c(engine, arguments.exportC)
    if arguments.timeDeserialize:
        _time_loading(engine, arguments)
        return
    _note_engine(engine)
    _report_layers(engine, arguments)
    if arguments.dumpRefit:
        log_all("I", refit_lines(engine))
    if arguments.timeRefit:
        log("I", refit_time_line(engine, arguments.iterations))
    if arguments.buildOnly:
        if arguments.report:
            write_report(engine, arguments, recorder, None, None)
        log("I", "Skipped inference phase since --buildOnly is added.")
        return
    infer(engine, arguments, recorder)


def _note_engine(engine: EngineLike) -> None:
    """What --json tells of an engine."""
    inputs, outputs = ([asdict(tensor) for tensor in tensors] for tensors in (engine.inputs, engine.outputs))
    target = getattr(engine, "target", "")
    note("engine", {"name": engine.name, "target": target, "inputs": inputs, "outputs": outputs})


def _export_triton(engine: EngineLike, arguments: Namespace) -> None:
    """A model named as the file of the network or plan is."""
    from mlirt.runtime.engine import Engine
    from mlirt.serve.triton.repository import export_repository

    if not isinstance(engine, Engine):
        raise InvalidInputError("--exportTriton needs a plan; choose --target=cpu or cuda")
    check_folder(arguments.exportTriton, "exportTriton")
    name = Path(arguments.loadEngine or arguments.saveEngine or arguments.onnx).stem
    log("I", f"Wrote the model {export_repository(engine, Path(arguments.exportTriton), name)} for Triton")


def _export_c(engine: EngineLike, folder: str) -> None:
    from mlirt.runtime.c_library.export import export_c

    check_folder(folder, "exportC")
    library = export_c(engine, folder)
    log("I", f"Wrote the C library {library} ({library.stat().st_size} bytes)")


def _is_shared(path: str | None) -> bool:
    """Whether a timing cache is a folder or a URL that build machines share; then it can be opened, too."""
    from mlirt.builder.shared_store import is_shared, open_store

    if path is None or not is_shared(path):
        return False
    open_store(path)
    return True


def _keep_timing_cache(arguments: Namespace) -> None:
    """A build that measures nothing, as one for the CPU does, leaves an empty cache where there was none."""
    path = arguments.timingCacheFile
    if path and "://" not in path and not Path(path).exists():
        from mlirt.builder.tactics.timing_cache import TimingCache

        Path(path).write_bytes(bytes(TimingCache().serialize()))


def _time_loading(engine: EngineLike, arguments: Namespace) -> None:
    """The median time of opening the plan again, which lies in a file of its own where none is asked for."""
    from mlirt.runtime.engine import Engine, load

    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.loadEngine or arguments.saveEngine or str(Path(folder) / "engine.plan")
        if not Path(path).exists():
            if not isinstance(engine, Engine):
                raise InvalidInputError("--timeDeserialize needs a plan; choose --target=cpu or cuda")
            engine.save(path)
        for _ in range(max(1, arguments.iterations)):
            start = time.perf_counter()
            load(path)
            times.append((time.perf_counter() - start) * 1e3)
    log("I", f"Total deserialization time is {statistics.median(times):g} milliseconds.")


def _load(arguments: Namespace) -> EngineLike:
    from mlirt.runtime.engine import load

    start = time.perf_counter()
    engine = load(
        arguments.loadEngine,
        shape_cache_mb=arguments.shapeCache,
        threads=arguments.threads,
        streams=arguments.streams,
    )
    log("I", f"Engine loaded in {time.perf_counter() - start:g} sec.")
    _report_machines(engine)
    return engine


def _report_machines(engine: EngineLike) -> None:
    """For an engine of several machines say which ones, and whose code it is."""
    from mlirt.runtime.engine import Engine

    if isinstance(engine, Engine) and engine.machines:
        log("I", f"The plan has code for {', '.join(engine.machines)}; {engine.machines[0]} was chosen.")


def _build(arguments: Namespace, recorder: BuildRecorder | None) -> EngineLike:
    from mlirt.builder.compile import compile as build
    from mlirt.builder.host import automatic_target, gpu_is_here

    if not Path(arguments.onnx).is_file():
        what = "that is a folder" if Path(arguments.onnx).is_dir() else "there is no such file"
        raise InvalidInputError(f"--onnx={arguments.onnx}: {what}")
    if arguments.target == "cuda" and not arguments.buildOnly:
        if not gpu_is_here():
            raise InvalidInputError("--target=cuda: there is no GPU to run on; --buildOnly builds for another machine")
    if arguments.target == "auto" and not (arguments.cpu or arguments.gpu):
        chosen, why = automatic_target()
        log("I", f"The target is {chosen}: {why}.")
    start = time.perf_counter()
    bar = ProgressBar(quiet=arguments.quiet)
    progress = PhaseTimes(_logged(bar) if arguments.verbose else bar)
    profiles = profiles_of(arguments)
    try:
        int8 = int8_options(arguments, profiles, progress, log)
        options = int8 | asked_precisions(arguments, int8.get("layer_precisions", {}))
        asked = asked_remarks(arguments)
        remarks = asked if recorder is None else recorder
        options |= {"remarks": remarks, "progress": both(progress, recorder)}
        if recorder is not None:
            recorder.calibration = int8.get("calibration")
            recorder.layer_precisions = options.get("layer_precisions") or {}
        config = config_of(arguments, options)
        engine = build(_model(arguments), config=config)
        progress.close()
        if remarks is not None and asked is not None:
            report_remarks(remarks, arguments, lambda line: log("I", line))
    finally:
        bar.close()
    seconds = time.perf_counter() - start
    log("I", f"Engine built in {seconds:g} sec.")
    _report_machines(engine)
    note("build_seconds", seconds)
    if arguments.verbose:
        log("V", f"Phases of the build: {progress.line()}")
    _keep_timing_cache(arguments)
    report_range(engine, arguments, config.layer_precisions)
    return engine


def _model(arguments: Namespace) -> str | onnx.ModelProto:
    """The file, or with --sparsity=force its network with other weights (tensorrt-features.md#16.5)."""
    if arguments.sparsity != "force":
        return arguments.onnx
    if arguments.onnx.endswith(".mlir"):
        raise InvalidInputError("--sparsity=force changes ONNX models; IR has its weights in a file of their own")
    from mlirt.frontend.onnx.sparse_weights import with_sparse_weights

    model, names = with_sparse_weights(arguments.onnx)
    log("W", f"--sparsity=force: the weights were overwritten, outputs are not those of the model: {', '.join(names)}")
    log("I", "No kernel is for sparse weights: dense ones compute with their zeros.")
    return model


def _logged(bar: ProgressBar) -> Callable[[str, int, int], None]:
    def progress(text: str, done: int, total: int) -> None:
        log("V", f"[{done}/{total}] {text}")
        bar(text, done, total)

    return progress


def _report_layers(engine: EngineLike, arguments: Namespace) -> None:
    if not (arguments.dumpLayerInfo or arguments.exportLayerInfo):
        return
    from mlirt.runtime.engine import Engine
    from mlirt.runtime.layer_records import inspected
    from mlirt.tools.layer_report import layer_lines

    bindings = [tensor.name for tensor in (*engine.inputs, *engine.outputs)]
    profiles = engine.profiles if isinstance(engine, Engine) else ()
    report = inspected(engine.layers, bindings, arguments.profilingVerbosity, profiles=profiles)
    if arguments.dumpLayerInfo:
        log_all("I", ["Layer Information:", *layer_lines(report)])
    if arguments.exportLayerInfo:
        write_json(arguments.exportLayerInfo, report)


if __name__ == "__main__":
    sys.exit(main())
