"""The flags of rt-opt, and the texts that describe passes."""

from __future__ import annotations

import argparse
import inspect
import sys
import textwrap
from collections.abc import Sequence

from xdsl.passes import ModulePass

from mlirt.dialects.fast_math import RIGHTS
from mlirt.errors import InvalidInputError
from mlirt.passes import registry
from mlirt.passes.options import option_infos
from mlirt.passes.phases import PRECISIONS, TARGETS, phase_names
from mlirt.tools.flag_parser import FlagParser, SentenceFormatter
from mlirt.tools.flag_values import natural, shapes
from mlirt.tools.kernel_text import FORMS
from mlirt.tools.plugin_files import add_plugins_flag
from mlirt.tools.research_flags import add_pass_plugin_flag, add_pipeline_edit_flag, add_remark_flags, bare_remarks
from mlirt.version import __version__


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The flags of a call; raises `InvalidInputError` where they are wrong."""
    parser = FlagParser(
        "rt-opt",
        "Runs compiler passes over IR text or an ONNX model and prints the result.",
        formatter_class=_HelpFormatter,
    )
    _add_input_and_output(parser)
    _add_pipeline(parser)
    _add_running(parser)
    _add_inspection(parser)
    _add_testing(parser)
    arguments = parser.parse_args(bare_remarks(sys.argv[1:] if argv is None else argv))
    _check(arguments)
    return arguments


def _check(arguments: argparse.Namespace) -> None:
    wanted = FORMS.get(arguments.emit, arguments.target)
    if wanted != arguments.target and (arguments.to or arguments.first):
        raise InvalidInputError(f"-t {arguments.emit} prints kernels for {wanted}: add --target={wanted}")
    given = {
        "--input": arguments.input_arrays,
        "--output": arguments.run_output,
        "--function": arguments.function,
        "--shapes": arguments.shapes,
    }
    for flag, value in given.items():
        if value and not arguments.run:
            raise InvalidInputError(f"{flag} is for running: add --run=reference, --run=cpu or --run=cuda")
    told = {
        "--html": arguments.html,
        "--pass-limit": arguments.pass_limit is not None,
        "--remarks": arguments.remarks,
        "--remarks-output": arguments.remarks_output,
        "--statistics": arguments.statistics,
    }
    runs = arguments.passes is not None or arguments.to or arguments.first or arguments.dump_phases
    for flag, value in told.items():
        if value and not runs:
            raise InvalidInputError(f"{flag} is for passes, and none run: add --to=PHASE or -p PIPELINE")
    if arguments.weights and arguments.input.endswith(".onnx"):
        raise InvalidInputError("--weights is for IR: an ONNX model has its own")
    if arguments.html and arguments.split_input_file:
        raise InvalidInputError("--html shows the passes over one module: leave --split-input-file out")
    if arguments.run_output and not arguments.run_output.endswith((".npz", ".json")):
        raise InvalidInputError(f"--output={arguments.run_output}: expected a name that ends in .npz or .json")


class _HelpFormatter(SentenceFormatter, argparse.RawDescriptionHelpFormatter):
    """Lists the passes below the flags; the list is only made when somebody asks for help."""

    def format_help(self) -> str:
        return f"{super().format_help()}\npasses:\n{pass_list()}"


def _add_input_and_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", nargs="?", default="-", help="a .mlir or .onnx file; - for standard input (default)")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write to a file instead of standard output")
    parser.add_argument(
        "-t",
        dest="emit",
        choices=("mlir", *FORMS),
        default="mlir",
        help="what to print: the IR (mlir, the default), or the kernels as Python source, as LLVM IR or assembly "
        "(those for a CPU), as PTX or SASS (those for a GPU)",
    )
    parser.add_argument(
        "--weights", metavar="FILE", help="the safetensors file of the weights (default: beside the input)"
    )
    add_plugins_flag(parser.add_argument)
    parser.add_argument(
        "--split-input-file", action="store_true", help="treat the parts between '// -----' lines one by one"
    )
    parser.add_argument("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    parser.add_argument("--print-op-generic", action="store_true", help="print ops in the generic form")
    parser.add_argument(
        "--print-debuginfo", action="store_true", help="print the locations: the names of the layers; in dumps too"
    )
    parser.add_argument("--version", action="version", version=f"rt-opt {__version__}")


def _add_pipeline(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which passes run")
    add_pass_plugin_flag(group.add_argument)
    add_pipeline_edit_flag(group.add_argument)
    group.add_argument(
        "-p",
        "--passes",
        metavar="PIPELINE",
        help="the passes to run, such as 'fold-constants,fuse-pointwise{max-ops=8}'",
    )
    group.add_argument("--to", metavar="PHASE", help=f"run the compiler up to a phase: {', '.join(phase_names())}")
    group.add_argument(
        "--from", dest="first", metavar="PHASE", help="start at a phase (the input is what the phase before it left)"
    )
    group.add_argument("--target", choices=TARGETS, default="cpu", help="the target of the phases (default: cpu)")
    group.add_argument(
        "--device",
        metavar="NAME",
        help="the device to choose kernels for: h100-pcie, cpu-avx2, h200+processors=148 or a .toml file",
    )
    group.add_argument(
        "--cpu", metavar="NAME", help="the processor to make code for: host, x86-64-v3, neoverse-v1, .. (default: host)"
    )
    group.add_argument(
        "--fast-math",
        default="default",
        metavar="LIST",
        help=f"rewritings of the phases that change results: none, default, all, or some of {', '.join(RIGHTS)}",
    )
    group.add_argument("--pass-limit", type=natural, metavar="N", help="run the first N passes alone")
    group.add_argument(
        "--precision", choices=PRECISIONS, default="fp32", help="the precision of the phases (default: fp32)"
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running the result")
    group.add_argument(
        "--run",
        choices=("reference", *TARGETS),
        help="execute every function without arguments, with its checks; with --input one function on these arrays, "
        "compiled from the phase that the IR is at (or --from)",
    )
    group.add_argument(
        "--input",
        dest="input_arrays",
        metavar="SPEC",
        action="append",
        default=[],
        help="an array to run on: FILE.npz, NAME=FILE.npy, NAME=FILE.npz, NAME=random:SEED or NAME=zeros; may be given "
        "again",
    )
    group.add_argument(
        "--shapes",
        type=shapes,
        default={},
        metavar="SPEC",
        help="shapes of random inputs and zeros: input0:1x3x224x224,.. (default: 1 for what the type leaves open)",
    )
    group.add_argument(
        "--output",
        dest="run_output",
        metavar="FILE",
        help="write the outputs to a .npz or .json file (default: print a line each)",
    )
    group.add_argument("--function", metavar="NAME", help="the function to run (default: main, or the only one)")


def _add_inspection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what happens inside (all on standard error)")
    group.add_argument(
        "--print-ir-before", metavar="PASS", action="append", default=[], help="print the IR before a pass"
    )
    group.add_argument(
        "--print-ir-after", metavar="PASS", action="append", default=[], help="print the IR after a pass"
    )
    group.add_argument("--print-ir-after-all", action="store_true", help="print the IR after every pass")
    group.add_argument(
        "--print-ir-after-change", action="store_true", help="print the IR after every pass that changed it"
    )
    group.add_argument("--dump-phases", metavar="DIR", help="write the IR after each phase to a folder")
    group.add_argument(
        "--html",
        metavar="FOLDER",
        help="write a page that shows what each pass changed, op by op as text and as a graph, with its remarks",
    )
    group.add_argument(
        "--print-quantization-report",
        action="store_true",
        help="print what became of each quantisation of the network, from the phase quantization on",
    )
    add_remark_flags(group.add_argument)
    group.add_argument(
        "--dump-pass-pipeline", action="store_true", help="print the phases that run, and the passes of each"
    )
    group.add_argument("--timing", action="store_true", help="print the time of each pass")
    group.add_argument("--list-passes", action="store_true", help="print the names of the passes and stop")
    group.add_argument("--help-pass", metavar="PASS", help="print what a pass does and its options, and stop")
    group.add_argument("--verbose", action="store_true", help="print tracebacks of errors")


def _add_testing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("testing")
    group.add_argument(
        "--verify-diagnostics", action="store_true", help="compare errors with // expected-error@+1 {{...}} annotations"
    )
    group.add_argument("--verify-each", action="store_true", help="check the IR after each pass")


def pass_list() -> str:
    """One line for each pass: its name and its summary; those of plugins, ours, then the names of xDSL's."""
    brought = registry.plugin_passes()
    summaries = {name: registry.summary(inspect.cleandoc(_own_doc(one))) for name, one in brought.items()}
    summaries |= {
        registry.name_of(path): registry.summary(registry.description(path)) for path in registry.pass_paths()
    }
    own = [f"  {name:34} {summaries[name]}" for name in [*sorted(brought), *sorted(summaries.keys() - brought.keys())]]
    others = textwrap.fill(
        ", ".join(sorted(registry.stock_passes().keys() - summaries.keys())),
        118,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
    )
    return "\n".join([*own, "", "and xDSL's own, which --help-pass describes:", others, ""])


def pass_help(name: str) -> str:
    """The whole text of a pass and its options; raises `InvalidInputError` for an unknown one."""
    pass_class = registry.load(name)
    path = registry.path_of(name)
    text = registry.description(path) if path is not None else inspect.cleandoc(_own_doc(pass_class))
    options = [f"  {info}" for info in option_infos(pass_class)]
    return "\n".join([name, "", textwrap.dedent(text).strip(), *(["", "options:", *options] if options else []), ""])


def _own_doc(pass_class: type[ModulePass]) -> str:
    """The docstring of a class; what a dataclass writes for one without is its signature."""
    text = pass_class.__dict__.get("__doc__") or ""
    if text and not text.startswith(f"{pass_class.__name__}("):
        return text
    return f"It has no description; its source is {pass_class.__module__}."
