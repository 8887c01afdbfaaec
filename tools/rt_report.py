"""rt-report: writes an engine as an HTML page: the network as a graph, launches, memory, roofline, build, kernels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence

from mlirt.builder.config.build_config import PRECISIONS
from mlirt.errors import InvalidInputError
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.flag_values import natural, shapes
from mlirt.tools.output_files import check_output, write_output
from mlirt.tools.plugin_files import add_plugins_flag, run_plugin_files, warn_on_standard_error
from mlirt.tools.report.page import page
from mlirt.tools.report.roofline import Peaks
from mlirt.tools.report.subject_reader import subjects_of
from mlirt.tools.research_flags import add_pass_plugin_flag, add_pipeline_edit_flag, pass_plugins
from mlirt.tools.tool_main import tool_main

_BUILT = (".onnx", ".mlir")
_OF_BUILDS = ("target", "precision", "first", "weights", "load_pass_plugin", "pipeline_edit")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0, or 1 for an error."""
    return tool_main("rt-report", argv, _parse_arguments, _write, lambda arguments: arguments.plan)


def _write(arguments: argparse.Namespace) -> int:
    check_output(arguments.output)
    run_plugin_files(arguments)
    with pass_plugins(arguments, warn_on_standard_error):
        write_output(_report(arguments), arguments.output)
    return 0


def _parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("rt-report", __doc__)
    add = parser.add_argument
    add("plan", help="a plan file; or an ONNX model or IR text of any phase (FILE.mlir), which are built")
    add("-o", dest="output", metavar="FILE", required=True, help="the page to write")
    add(
        "--shapes",
        type=shapes,
        default={},
        metavar="SPEC",
        help="shapes of the inputs: input0:1x3x224x224,.. (default: those of the profile, else usual ones)",
    )
    add("--profile", metavar="FILE", help="times of the launches, from rt-exec --exportProfile")
    add("--runs", type=natural, metavar="N", help="run it so many times for the times (default: 10, but 0 for a plan)")
    add("--source", metavar="FILE", help="source of the kernels of a plan, from rt-opt -t")
    add(
        "--machine-code",
        type=natural,
        metavar="N",
        help="show so many instructions of each kernel (default: as many as keep the page small)",
    )
    add("--peak", type=_peaks, metavar="GOPS,GBS", help="what the machine reaches, for the roofline: 2000,80")
    compare = parser.add_argument_group("to compare with").add_argument
    compare("--compare", metavar="FILE", help="another engine of the network: a plan, a model or IR")
    compare("--compare-profile", metavar="FILE", help="times of its launches")
    built = parser.add_argument_group("for models and IR").add_argument
    built("--target", choices=("auto", "cpu", "cuda"), default="auto", help="what to build for (default: %(default)s)")
    built("--precision", choices=PRECISIONS, default="fp32", help="the precision of the build (default: %(default)s)")
    built("--from", dest="first", metavar="PHASE", help="of IR the first phase to run (default: the dialects tell)")
    built("--weights", metavar="FILE", help="of IR the safetensors file of the weights (default: beside it)")
    add_pass_plugin_flag(built)
    add_pipeline_edit_flag(built)
    add_plugins_flag(add)
    add("--verbose", action="store_true", help="print tracebacks of errors")
    arguments = parser.parse_args(argv)
    _check(arguments, parser.given(sys.argv[1:] if argv is None else argv))
    return arguments


def _check(arguments: argparse.Namespace, given: Collection[str]) -> None:
    files = [arguments.plan, arguments.compare or arguments.plan]
    for name in _OF_BUILDS:
        if name in given and not any(file.endswith(_BUILT) for file in files):
            flag = "from" if name == "first" else name.replace("_", "-")
            raise InvalidInputError(f"--{flag} is for what is built: give FILE.onnx or FILE.mlir")
    if arguments.compare_profile and not arguments.compare:
        raise InvalidInputError("--compare-profile has the times of another engine: give it with --compare")


def _peaks(text: str) -> Peaks:
    try:
        operations, size = (float(part) for part in text.split(","))
    except ValueError:
        operations = size = 0.0
    if not (0 < operations < float("inf") and 0 < size < float("inf")):
        raise argparse.ArgumentTypeError(f"expected two positive numbers such as 2000,80, not {text!r}")
    return Peaks(operations, size)


def _report(arguments: argparse.Namespace) -> str:
    subject, *others = subjects_of(arguments)
    return page(subject, others[0] if others else None, arguments.peak)


if __name__ == "__main__":
    sys.exit(main())
