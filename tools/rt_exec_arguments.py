"""Reads the flags of rt-exec, and refuses those that contradict each other."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mlirt.errors import InvalidInputError
from mlirt.tools.exec_config import take_config
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.research_flags import bare_remarks
from mlirt.tools.rt_exec_flags import add_flags
from mlirt.tools.trtexec_flags import take_trtexec_flags

_FOR_BUILDING = (
    "config", "saveEngine", "timingCacheFile", "heuristic", "cpuTiming", "tacticSources",
    "minShapes", "optShapes", "maxShapes", "layerPrecisions", "layerOutputTypes",
    "refit", "fp16", "int8", "best", "calib", "calibData",
    "inputIOFormats", "outputIOFormats", "directIO", "checkRange", "pipeline_edit", "state", "markDebug",
    "weights", "first", "remarks", "statistics", "remarks_output", "load_pass_plugin", "fastMath",
)  # fmt: skip


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The flags as a namespace; `InvalidInputError` for what is wrong, `UnsupportedError` for what there is not."""
    argv, without_effect = take_trtexec_flags(argv)
    parser = FlagParser(
        "rt-exec", "Build an engine from an ONNX model or load a plan, run it, and measure (with trtexec's flags)."
    )
    add_flags(parser)
    argv = bare_remarks(argv)
    arguments = parser.parse_args(argv)
    take_config(arguments, parser.given(argv))
    _check(arguments)
    arguments.without_effect = without_effect
    return arguments


def _check(arguments: argparse.Namespace) -> None:
    if bool(arguments.onnx) == bool(arguments.loadEngine):
        raise InvalidInputError("give either --onnx=FILE or --loadEngine=FILE")
    building = [flag for flag in _FOR_BUILDING if getattr(arguments, flag)]
    if arguments.loadEngine and (building or arguments.target != "auto"):
        which = building[0].replace("first", "from").replace("_", "-") if building else "target"
        raise InvalidInputError(f"--{which} is for building, but --loadEngine loads an engine that is built")
    if arguments.loadEngine and arguments.sparsity == "force":
        raise InvalidInputError("--sparsity=force is for building, but --loadEngine loads an engine that is built")
    if (arguments.weights or arguments.first) and not arguments.onnx.endswith(".mlir"):
        raise InvalidInputError("--weights and --from are for IR: give --onnx=FILE.mlir")
    if arguments.calibData and str(arguments.onnx).endswith(".mlir"):
        raise InvalidInputError("--calibData: calibrate the ONNX model, and give the cache that --calib writes")
    if arguments.onnx and (arguments.dumpRefit or arguments.timeRefit) and not arguments.refit:
        flag = "dumpRefit" if arguments.dumpRefit else "timeRefit"
        raise InvalidInputError(f"--{flag} is for engines that keep their network: add --refit")
    if arguments.timingCacheFile and arguments.noBuilderCache:
        raise InvalidInputError("--timingCacheFile and --noBuilderCache contradict each other: give one of them")
    given = [bool(arguments.minShapes), bool(arguments.maxShapes)]
    if any(given) and not all(given):
        raise InvalidInputError(
            "--minShapes and --maxShapes go together (--optShapes defaults to --shapes, then --maxShapes)"
        )
    calibrated = [bool(getattr(arguments, f"{which}ShapesCalib")) for which in ("min", "opt", "max")]
    if any(calibrated) and not all(calibrated):
        raise InvalidInputError("--minShapesCalib, --optShapesCalib and --maxShapesCalib go together")
    if any(calibrated) and not arguments.calibData:
        raise InvalidInputError("--optShapesCalib is for calibrating: add --calibData=PATH")
    if arguments.target == "reference" and arguments.saveEngine:
        raise InvalidInputError("--target=reference has no plan to save; leave out --saveEngine or choose cpu or cuda")
    path = arguments.exportOutput
    if path and not path.endswith((".json", ".npz")):
        raise InvalidInputError(f"--exportOutput={path}: expected a name that ends in .json or .npz")
