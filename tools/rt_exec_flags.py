"""What rt-exec can be told: trtexec's flags, group by group."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from mlirt.dialects.fast_math import RIGHTS
from mlirt.tools.flag_values import (
    debug_files,
    device,
    files,
    io_formats,
    mebibytes,
    memory_pools,
    names,
    natural,
    number,
    output_types,
    percentiles,
    positive,
    precisions,
    previews,
    shapes,
    share,
    states,
)
from mlirt.tools.plugin_files import add_plugins_flag
from mlirt.tools.research_flags import add_pass_plugin_flag, add_pipeline_edit_flag, add_remark_flags

_PERCENTILES = "the percentiles of the times that are printed; default: 90,95,99"

Add: TypeAlias = "Callable[..., object]"
"""What adds a flag to one group of a parser."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """All of them, in the order in which --help lists them."""
    _add_model(parser.add_argument_group("model").add_argument)
    build = parser.add_argument_group("build").add_argument
    for add_some in (_add_formats, _add_calibration, _add_plan, _add_timing, _add_layers, _add_engine):
        add_some(build)
    _add_run(parser.add_argument_group("run").add_argument)
    report = parser.add_argument_group("report").add_argument
    _add_report(report)
    add_remark_flags(report)


def _add_model(add: Add) -> None:
    """The network."""
    add("--onnx", metavar="FILE", help="the ONNX model, or IR text of any phase (FILE.mlir)")
    add("--checkOnly", action="store_true", help="only say whether the model can be read, or all that cannot be taken")
    add("--weights", metavar="FILE", help="the safetensors file of the weights of IR (default: beside it)")
    add("--from", dest="first", metavar="PHASE", help="the first phase for IR (default: its dialects tell)")
    add_plugins_flag(add)
    add_pass_plugin_flag(add)
    add_pipeline_edit_flag(add)
    add("--explicitBatch", action="store_true", help="accepted, as trtexec has it; it is always so")


def _add_formats(add: Add) -> None:
    """Where all settings may come from, the target, and the formats of numbers that it may use."""
    add("--config", metavar="FILE", help="settings of the build from JSON or TOML; flags that are given go before them")
    add(
        "--target",
        choices=("auto", "cpu", "cuda", "reference"),
        default="auto",
        help="what to build for; auto is cuda where there is a GPU, else cpu; default: %(default)s",
    )
    add("--fp16", action="store_true", help="compute in half precision where the target can")
    add("--tf32", action="store_true", help="let matrix units read float32 with 10 bits of mantissa")
    add("--int8", action="store_true", help="compute products in int8")
    add(
        "--sparsity",
        choices=("disable", "enable", "force"),
        default="disable",
        help="force overwrites weights so that two of each four are zero; no kernel is for such ones; "
        "default: %(default)s",
    )
    add("--best", action="store_true", help="the same as --int8 and --fp16 together")
    add(
        "--checkRange",
        action="store_true",
        help="run the network in float32 and name the layers whose results half precision cannot hold",
    )


def _add_calibration(add: Add) -> None:
    """How the ranges of bytes are found."""
    add("--calib", metavar="FILE", help="read the calibration cache; with --calibData write it where there is none")
    add("--calibData", metavar="PATH", help="calibrate with a folder of pictures or .npy files, or with one such file")
    add(
        "--calibMethod",
        choices=("auto", "entropy", "minmax", "percentile", "mse", "legacy"),
        default="auto",
        help="how --calibData finds ranges; auto takes the one that loses least on samples; default: %(default)s",
    )
    _add_shape_range(add, "ShapesCalib", "shapes while calibrating, which uses those of --optShapesCalib")
    add("--calibReport", metavar="FILE", help="write an HTML page about the calibration")
    add(
        "--accuracyTarget",
        type=share,
        metavar="A",
        help="keep layers in float, those that lose most in INT8 or FP16, until 1 - the outputs' relative error is A",
    )


def _add_plan(add: Add) -> None:
    """The shapes that a plan is for, and its file."""
    _add_shape_range(add, "Shapes", "shapes: input0:1x3x224x224,input1:1x8")
    add("--saveEngine", metavar="FILE", help="write the plan")
    add(
        "--exportTriton",
        metavar="DIR",
        help="write a model repository for Triton Inference Server",
    )
    add(
        "--exportC",
        metavar="DIR",
        help="write the engine, for processors or CUDA devices, as a C library: net.h, libnet.so, net.o, an example",
    )
    add("--loadEngine", metavar="FILE", help="read a plan in place of building")


def _add_timing(add: Add) -> None:
    """How tactics are chosen."""
    add("--timingCacheFile", metavar="FILE", help="read measured times of tactics, and add the new ones")
    add("--noBuilderCache", action="store_true", help="leave measured times out: do not read or write any")
    add(
        "--avgTiming",
        type=positive,
        default=10,
        metavar="N",
        help="runs that are measured at once; default: %(default)s",
    )
    add("--minTiming", type=positive, default=7, metavar="N", help="measurements of a tactic; default: %(default)s")
    add("--heuristic", action="store_true", help="choose tactics by estimates, measure none (CUDA)")
    add("--cpuTiming", action="store_true", help="measure tactics on this machine's processors (CPU)")
    add(
        "--tacticSources",
        default="",
        metavar="SPEC",
        help="libraries whose kernels are measured beside our own: +CUBLAS_LT,+CUDNN (CUDA); none by default",
    )
    add(
        "--preview",
        type=previews,
        default={},
        metavar="SPEC",
        help="+disableExternalTacticSourcesForCore0805 measures no library, whatever --tacticSources says",
    )


def _add_layers(add: Add) -> None:
    """Formats of single layers, of inputs and of outputs."""
    add(
        "--layerPrecisions",
        type=precisions,
        default={},
        metavar="SPEC",
        help="what layers compute in: conv1:fp32,*:fp16 (the star: all other layers)",
    )
    add(
        "--precisionConstraints",
        choices=("none", "prefer", "obey"),
        default="none",
        help="what --layerPrecisions mean: none ignores them, prefer warns where they cannot be had, obey fails; "
        "default: %(default)s",
    )
    add(
        "--layerOutputTypes",
        type=output_types,
        default={},
        metavar="SPEC",
        help="the types of layers' outputs, where no precision is given: conv1:fp16,*:fp32 (of several, the first)",
    )
    for flag, what in (("input", "inputs"), ("output", "outputs")):
        add(
            f"--{flag}IOFormats",
            type=io_formats,
            default=[],
            metavar="SPEC",
            help=f"types and formats of the {what}, one for all or one for each in order: fp16:chw,fp32:hwc+chw",
        )
    add("--directIO", action="store_true", help="fail where inputs or outputs would be reformatted")
    add(
        "--fastMath",
        default="",
        metavar="LIST",
        help=f"rewritings that change results: none, default, all, or some of {', '.join(RIGHTS)}",
    )


def _add_engine(add: Add) -> None:
    """The memory and the device of an engine, and what it keeps of the network."""
    add(
        "--memPoolSize",
        type=memory_pools,
        default={},
        metavar="SPEC",
        help="workspace:MIB is the most memory beside its tensors that a layer may take (CUDA)",
    )
    add("--workspace", type=mebibytes, metavar="MIB", help="the same as --memPoolSize=workspace:MIB, by its old name")
    add(
        "--state",
        type=states,
        default={},
        metavar="SPEC",
        help="inputs that are outputs of the run before, and stay in the engine: h0:h1,c0:c1",
    )
    add(
        "--markDebug",
        type=names,
        default=[],
        metavar="NAMES",
        help="inner tensors that a second engine computes beside the network's: conv1,relu1",
    )
    add("--refit", action="store_true", help="keep the network in the plan, for other weights")
    add("--dumpRefit", action="store_true", help="print the layers and weights that can be changed")
    add(
        "--device",
        type=device,
        default=0,
        metavar="N|NAME",
        help="the GPU to use, by its number, default: %(default)s; or a device to choose kernels for: h100-pcie, "
        "cpu-avx2, h200+processors=148 or a .toml file",
    )
    add(
        "--cpu",
        metavar="NAMES",
        help="the processors to make code for, with commas: host, x86-64-v3, neoverse-v1, ..; default: host",
    )
    add("--gpu", metavar="NAMES", help="the architectures of GPUs to make code for, with commas: sm_80+ptx,sm_90a")
    add(
        "--system",
        metavar="NAMES",
        help="the operating systems to make code for, with commas: host, linux, darwin (macOS), windows; default: host",
    )
    add("--buildOnly", action="store_true", help="do not run")
    add(
        "--profilingVerbosity",
        choices=("layer_names_only", "detailed", "none", "default", "verbose"),
        default="layer_names_only",
        help="how much --dumpLayerInfo and --exportLayerInfo say; default: %(default)s",
    )


def _add_run(add: Add) -> None:
    """What is run, how often, and how."""
    add("--shapes", type=shapes, default={}, metavar="SPEC", help="the shapes to run: input0:1x3x224x224")
    add(
        "--loadInputs",
        type=files,
        default={},
        metavar="SPEC",
        help="files of inputs, such as name:file.npy,other:file.bin; of an .npz the array of that name or the only one",
    )
    add("--iterations", type=natural, default=10, metavar="N", help="measure at least N runs; default: %(default)s")
    add(
        "--warmUp",
        type=number,
        default=200,
        metavar="MS",
        help="milliseconds of runs before measuring; default: %(default)s",
    )
    add("--duration", type=number, default=3, metavar="S", help="measure at least S seconds; default: %(default)s")
    add(
        "--sleepTime",
        "--idleTime",
        type=number,
        default=0,
        metavar="MS",
        help="pause between runs; default: %(default)s",
    )
    add(
        "--shapeCache",
        type=number,
        metavar="MIB",
        help="memory for what runs have worked out for their shapes; 0 keeps the last one alone; default: 64",
    )
    add("--streams", type=positive, default=1, metavar="N", help="runs that go on at once; default: %(default)s")
    add(
        "--threads",
        type=positive,
        nargs="?",
        const=None,
        metavar="N",
        help="on a CPU, the threads that the streams divide among them; each stream has a caller of its own, always",
    )
    add("--noDataTransfers", action="store_true", help="inputs stay on the device, outputs are not fetched")
    add("--useCudaGraph", action="store_true", help="replay a CUDA graph (on CUDA this is always so)")
    add("--useSpinWait", action="store_true", help="accepted; waiting is left to the driver")
    add("--separateProfileRun", action="store_true", help="profile apart from measuring (always so)")


def _add_report(add: Add) -> None:
    """What is said about it."""
    add("--verbose", action="store_true", help="say more, and show where an error came from")
    add("--quiet", action="store_true", help="say nothing but warnings and errors")
    add("--json", action="store_true", help="print one JSON object for programs; all else goes to standard error")
    add("--avgRuns", type=natural, default=10, metavar="N", help="runs per average; default: %(default)s")
    add("--percentile", type=percentiles, default=(90.0, 95.0, 99.0), metavar="P1,P2", help=_PERCENTILES)
    for flag, what in (("Output", "the outputs"), ("Profile", "the time of each layer"), ("LayerInfo", "the layers")):
        add(f"--dump{flag}", action="store_true", help=f"print {what}")
        add(f"--export{flag}", metavar="FILE", help=f"write {what} to a JSON file" + " (or .npz)" * (flag == "Output"))
    add(
        "--saveDebugTensors",
        type=debug_files,
        default={},
        metavar="SPEC",
        help="write debug tensors: conv1:conv1.npy,relu1:relu1.raw",
    )
    add("--report", metavar="FILE", help="write an HTML page about the engine, its network, times, memory and build")
    add("--timeDeserialize", action="store_true", help="time the opening of the plan, and do not run")
    add("--timeRefit", action="store_true", help="time giving the engine its weights again")
    add("--exportTimes", metavar="FILE", help="write the time stamps of all runs to a JSON file")


def _add_shape_range(add: Add, name: str, what: str) -> None:
    """--minNAME, --optNAME and --maxNAME."""
    for flag, size in (("min", "smallest"), ("opt", "usual"), ("max", "largest")):
        add(f"--{flag}{name}", type=shapes, default={}, metavar="SPEC", help=f"{size} {what}")
