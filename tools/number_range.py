"""What rt-exec says about numbers that leave their range: of layers before a run, of outputs after it."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.errors import AccuracyWarning, InvalidInputError
from mlirt.tools.int8_build import precision_of
from mlirt.tools.rt_exec_profiles import profiles_of
from mlirt.tools.trtexec_log import log, log_all

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.engine_interface import EngineLike

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def report_range(engine: EngineLike, arguments: Namespace, asked: Mapping[str, str]) -> None:
    """With --checkRange, or where an engine in half precision is built for inputs that are given: run the check.

    `asked` is what layers shall compute in.
    """
    is_asked_for = arguments.checkRange
    if not (is_asked_for or (arguments.loadInputs and is_half(engine, arguments))):
        return
    from mlirt.builder.number_range.check_range import check_range, warn_of_range
    from mlirt.tools.exec_feeds import feeds_of

    start = time.perf_counter()
    feeds, profiles = feeds_of(engine, arguments), profiles_of(arguments) or None
    try:
        report = check_range(arguments.onnx, feeds, layer_precisions=asked, profiles=profiles)
    except InvalidInputError as error:
        if is_asked_for:
            raise
        log("W", f"The range of half precision was not checked: {' '.join(str(error).split())}")
        return
    log("I", f"Checked the range of half precision in {time.perf_counter() - start:g} sec.")
    if is_asked_for:
        log_all("W" if report else "I", report.lines())
    if report:
        warn_of_range(report)


def is_half(engine: EngineLike, arguments: Namespace) -> bool:
    """Whether an engine may compute in half precision, as far as the flags tell."""
    on_gpu = getattr(engine, "target", "") == "cuda"
    return on_gpu and (bool(arguments.loadEngine) or "fp16" in precision_of(arguments))


def report_outputs(
    engine: EngineLike, arguments: Namespace, feeds: Mapping[str, Array], outputs: Mapping[str, Array]
) -> None:
    """Say which outputs have infinities or NaN although no input has any."""
    if any(_not_finite(array) for array in feeds.values()):
        return
    for name, array in outputs.items():
        count = _not_finite(array)
        if not count:
            continue
        text = (
            f"output {name!r}: {count} of {array.size} numbers are infinite or NaN, but those of all inputs are finite"
        )
        if is_half(engine, arguments):
            advice = "see which layer leaves the range of half precision: rt-exec --onnx=FILE --fp16 --checkRange"
            warnings.warn(f"{text}; {advice}", AccuracyWarning, stacklevel=2)
        else:
            log("W", text)


def _not_finite(array: Array) -> int:
    """How many numbers are infinite or NaN."""
    import numpy as np

    if array.dtype.kind not in "fV":
        return 0
    wide = array.astype(np.float32) if array.dtype.kind == "V" else array
    return int(array.size - np.isfinite(wide).sum())
