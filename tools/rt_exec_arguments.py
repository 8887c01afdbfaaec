"""The flags of rt-exec: trtexec's names and meanings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from mlirt.errors import InvalidInputError
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.flag_values import (
    Shape,
    files,
    io_formats,
    mebibytes,
    natural,
    number,
    output_types,
    percentiles,
    positive,
    precisions,
    shapes,
    share,
    workspace,
)
from mlirt.tools.trtexec_flags import take_trtexec_flags

_FOR_BUILDING = (
    "saveEngine", "timingCacheFile", "heuristic", "tacticSources", "minShapes", "optShapes", "maxShapes",
    "layerPrecisions", "layerOutputTypes", "refit", "fp16", "int8", "best", "calib", "calibData",
    "inputIOFormats", "outputIOFormats", "directIO",
)  # fmt: skip


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The flags as a namespace; `InvalidInputError` for what is wrong, `UnsupportedError` for what there is not."""
    argv, without_effect = take_trtexec_flags(argv)
    arguments = _parser().parse_args(list(argv))
    _check(arguments)
    arguments.without_effect = without_effect
    return arguments


def profiles_of(arguments: argparse.Namespace) -> dict[str, tuple[Shape, Shape, Shape]]:
    """(min, opt, max) by input; inputs of --shapes alone have just that shape, as with trtexec."""
    smallest, usual, largest = arguments.minShapes, arguments.optShapes, arguments.maxShapes
    found: dict[str, tuple[Shape, Shape, Shape]] = {}
    for name in sorted({*smallest, *usual, *largest}):
        if name not in smallest or name not in largest:
            raise InvalidInputError(f"input {name!r} needs a shape in both --minShapes and --maxShapes")
        best = usual.get(name, arguments.shapes.get(name, largest[name]))
        found[name] = (smallest[name], best, largest[name])
    return found or {name: (shape, shape, shape) for name, shape in arguments.shapes.items()}


def _check(arguments: argparse.Namespace) -> None:
    if bool(arguments.onnx) == bool(arguments.loadEngine):
        raise InvalidInputError("give either --onnx=FILE or --loadEngine=FILE")
    building = [flag for flag in _FOR_BUILDING if getattr(arguments, flag)]
    if arguments.loadEngine and (building or arguments.target != "auto"):
        which = building[0] if building else "target"
        raise InvalidInputError(f"--{which} is for building, but --loadEngine loads an engine that is built")
    if arguments.timeDeserialize and not (arguments.loadEngine or arguments.saveEngine):
        raise InvalidInputError("--timeDeserialize needs a plan: add --loadEngine=FILE or --saveEngine=FILE")
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


def _parser() -> argparse.ArgumentParser:
    parser = FlagParser(
        "rt-exec", "Build an engine from an ONNX model or load a plan, run it, and measure (with trtexec's flags)."
    )
    model = parser.add_argument_group("model")
    model.add_argument("--onnx", metavar="FILE", help="the ONNX model")
    model.add_argument("--explicitBatch", action="store_true", help="always so; accepted for trtexec's sake")
    build = parser.add_argument_group("build")
    build.add_argument(
        "--target", choices=("auto", "cpu", "cuda", "reference"), default="auto", help="default: %(default)s"
    )
    build.add_argument("--fp16", action="store_true", help="compute in half precision where the target can")
    build.add_argument("--tf32", action="store_true", help="let matrix units read float32 with 10 bits of mantissa")
    build.add_argument("--int8", action="store_true", help="compute products on bytes")
    build.add_argument("--best", action="store_true", help="--int8 and --fp16")
    build.add_argument(
        "--calib", metavar="FILE", help="read the calibration cache; with --calibData write it where there is none"
    )
    build.add_argument(
        "--calibData", metavar="PATH", help="calibrate with a folder of pictures or .npy files, or with one such file"
    )
    build.add_argument(
        "--calibMethod",
        choices=("entropy", "minmax", "percentile", "mse", "legacy"),
        default="entropy",
        help="how --calibData finds ranges; default: %(default)s",
    )
    _add_shape_range(build.add_argument, "ShapesCalib", "shapes while calibrating, of which the usual ones are used")
    build.add_argument("--calibReport", metavar="FILE", help="write an HTML page about the calibration")
    build.add_argument(
        "--accuracyTarget",
        type=share,
        metavar="A",
        help="keep the layers in float that lose most, until 1 - the outputs' relative error is at least A",
    )
    _add_shape_range(build.add_argument, "Shapes", "shapes: input0:1x3x224x224,input1:1x8")
    build.add_argument("--saveEngine", metavar="FILE", help="write the plan")
    build.add_argument("--loadEngine", metavar="FILE", help="read a plan in place of building")
    build.add_argument(
        "--timingCacheFile", metavar="FILE", help="read measured times of tactics, and add the new ones (CUDA)"
    )
    build.add_argument(
        "--noBuilderCache", action="store_true", help="leave measured times out: do not read or write any"
    )
    build.add_argument(
        "--avgTiming",
        type=positive,
        default=10,
        metavar="N",
        help="runs that are measured at once; default: %(default)s",
    )
    build.add_argument(
        "--minTiming", type=positive, default=7, metavar="N", help="measurements of a tactic; default: %(default)s"
    )
    build.add_argument("--heuristic", action="store_true", help="choose tactics by estimates, measure none (CUDA)")
    build.add_argument(
        "--tacticSources",
        default="",
        metavar="SPEC",
        help="libraries whose kernels are measured beside our own: +CUBLAS_LT,+CUDNN (CUDA); none by default",
    )
    build.add_argument(
        "--layerPrecisions",
        type=precisions,
        default={},
        metavar="SPEC",
        help="what layers compute in: conv1:fp32,*:fp16 (the star: all other layers)",
    )
    build.add_argument(
        "--precisionConstraints",
        choices=("none", "prefer", "obey"),
        default="none",
        help="none ignores --layerPrecisions, prefer warns where they cannot be had, obey fails; default: %(default)s",
    )
    build.add_argument(
        "--layerOutputTypes",
        type=output_types,
        default={},
        metavar="SPEC",
        help="the types of layers' outputs, where no precision is given: conv1:fp16,*:fp32 (of several, the first)",
    )
    for flag, what in (("input", "inputs"), ("output", "outputs")):
        build.add_argument(
            f"--{flag}IOFormats",
            type=io_formats,
            default=[],
            metavar="SPEC",
            help=f"types and formats of the {what}, one for all or one for each in order: fp16:chw,fp32:hwc+chw",
        )
    build.add_argument("--directIO", action="store_true", help="fail where inputs or outputs would be reformatted")
    build.add_argument(
        "--memPoolSize",
        type=workspace,
        metavar="SPEC",
        help="workspace:MIB is the most memory beside its tensors that a layer may take (CUDA)",
    )
    build.add_argument("--workspace", type=mebibytes, metavar="MIB", help="the same by its old name")
    build.add_argument("--refit", action="store_true", help="keep the network in the plan, for other weights")
    build.add_argument("--dumpRefit", action="store_true", help="print the layers and weights that can be changed")
    build.add_argument("--device", type=natural, default=0, metavar="N", help="the GPU to use; default: %(default)s")
    build.add_argument("--buildOnly", action="store_true", help="do not run")
    build.add_argument(
        "--profilingVerbosity",
        choices=("layer_names_only", "detailed", "none", "default", "verbose"),
        default="layer_names_only",
        help="how much --dumpLayerInfo and --exportLayerInfo say; default: %(default)s",
    )
    run = parser.add_argument_group("run")
    run.add_argument("--shapes", type=shapes, default={}, metavar="SPEC", help="the shapes to run: input0:1x3x224x224")
    run.add_argument("--loadInputs", type=files, default={}, metavar="SPEC", help="name:file.npy or name:file.bin, ...")
    run.add_argument(
        "--iterations", type=natural, default=10, metavar="N", help="at least N runs; default: %(default)s"
    )
    run.add_argument(
        "--warmUp", type=number, default=200, metavar="MS", help="milliseconds before measuring; %(default)s"
    )
    run.add_argument("--duration", type=number, default=3, metavar="S", help="at least S seconds; default: %(default)s")
    run.add_argument(
        "--sleepTime",
        "--idleTime",
        type=number,
        default=0,
        metavar="MS",
        help="pause between runs; default: %(default)s",
    )
    run.add_argument(
        "--streams", type=positive, default=1, metavar="N", help="contexts that run at once; default: %(default)s"
    )
    run.add_argument("--threads", action="store_true", help="a thread for each stream (always so)")
    run.add_argument(
        "--noDataTransfers", action="store_true", help="inputs stay on the device, outputs are not fetched"
    )
    run.add_argument("--useCudaGraph", action="store_true", help="replay a CUDA graph (on CUDA this is always so)")
    run.add_argument("--useSpinWait", action="store_true", help="accepted; waiting is left to the driver")
    run.add_argument("--separateProfileRun", action="store_true", help="profile apart from measuring (always so)")
    report = parser.add_argument_group("report")
    report.add_argument("--verbose", action="store_true", help="say more; show where an error came from")
    report.add_argument(
        "--avgRuns", type=natural, default=10, metavar="N", help="runs per average; default: %(default)s"
    )
    report.add_argument(
        "--percentile", type=percentiles, default=(90.0, 95.0, 99.0), metavar="P1,P2", help="default: 90,95,99"
    )
    for flag, what in (("Output", "the outputs"), ("Profile", "the time of each layer"), ("LayerInfo", "the layers")):
        report.add_argument(f"--dump{flag}", action="store_true", help=f"print {what}")
        report.add_argument(
            f"--export{flag}", metavar="FILE", help=f"write {what} to a JSON file" + " (or .npz)" * (flag == "Output")
        )
    report.add_argument("--timeDeserialize", action="store_true", help="time the opening of the plan, and do not run")
    report.add_argument("--timeRefit", action="store_true", help="time giving the engine its weights again")
    report.add_argument("--exportTimes", metavar="FILE", help="write the time stamps of all runs to a JSON file")
    return parser


def _add_shape_range(add: Callable[..., object], name: str, what: str) -> None:
    """--minNAME, --optNAME and --maxNAME."""
    for flag, size in (("min", "smallest"), ("opt", "usual"), ("max", "largest")):
        add(f"--{flag}{name}", type=shapes, default={}, metavar="SPEC", help=f"{size} {what}")
