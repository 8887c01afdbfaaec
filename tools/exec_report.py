"""rt-exec --report: the page of rt-report for the engine at hand, on the inputs that it ran on."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlirt.errors import InvalidInputError, MlirtError

if TYPE_CHECKING:
    import numpy as np

    from mlirt.passes.remarks import Remarks
    from mlirt.runtime.engine_interface import EngineLike
    from mlirt.tools.report.build_recorder import BuildRecorder


def recorder_for(arguments: Namespace, asked: Remarks | None) -> BuildRecorder | None:
    """What watches the build where a report is asked for; it keeps the remarks that were asked for too."""
    if not arguments.report:
        return None
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.tools.exec_config import device_of
    from mlirt.tools.report.build_recorder import BuildRecorder

    passes, counts = (asked.passes, asked.statistics) if asked is not None else ((), False)
    config = BuildConfig(target=arguments.target, device=device_of(arguments))
    return BuildRecorder(passes, counts, target=config.chosen_target())


def both(one: Callable[[str, int, int], None], other: BuildRecorder | None) -> Callable[[str, int, int], None]:
    """Progress for both of them."""

    def tell(text: str, done: int, total: int) -> None:
        one(text, done, total)
        if other is not None:
            other.progress(text, done, total)

    return tell


def _errors_of_tensors(recorder: BuildRecorder) -> dict[str, float]:
    """What int8 loses of each tensor, where a calibration has kept samples."""
    if recorder.calibration is None:
        return {}
    from mlirt.builder.calibration.comparison import tensor_errors
    from mlirt.tools.trtexec_log import log

    try:
        return tensor_errors(recorder.calibration, layer_precisions=recorder.layer_precisions)
    except MlirtError as error:
        log("W", f"--report: the errors of tensors are not known: {' '.join(str(error).split())}")
        return {}


def write_report(
    engine: EngineLike,
    arguments: Namespace,
    recorder: BuildRecorder | None,
    records: Sequence[Mapping[str, object]] | None,
    feeds: Mapping[str, np.ndarray[Any, np.dtype[Any]]] | None,
) -> None:
    """Write the page; `records` are the times of the launches and `feeds` the inputs, where it was run."""
    from mlirt.runtime.engine import Engine
    from mlirt.tools.output_files import write_output
    from mlirt.tools.report.launch_times import times_in
    from mlirt.tools.report.machine_code import machine_code
    from mlirt.tools.report.page import page
    from mlirt.tools.report.subject import Subject
    from mlirt.tools.report.subject_reader import model_nodes
    from mlirt.tools.report.usual_shapes import usual_binding

    if not isinstance(engine, Engine):
        raise InvalidInputError("--report: target reference has no plan to report; take cpu or cuda")
    packed = engine.packed(feeds or {})
    binding = usual_binding(engine.plan.manifest, {name: array.shape for name, array in packed.items()})
    times = times_in(records) if records is not None else None
    build = None
    if recorder is not None:
        recorder.close()
        is_onnx = not arguments.onnx.endswith(".mlir")
        build = recorder.facts(model_nodes(arguments.onnx) if is_onnx else ())
        build = replace(build, errors=_errors_of_tensors(recorder))
    kernels = recorder.kernels if recorder is not None else {}
    code = machine_code(engine.plan)
    write_output(page(Subject(engine.name, engine.plan, binding, times, kernels, build, code)), arguments.report)
