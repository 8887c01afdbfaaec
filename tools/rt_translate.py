"""rt-translate: changes the form of a network (ONNX to IR text, IR to Python source) and runs no pass."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from mlirt.atomic_file import is_special
from mlirt.dialects.xdsl_compat import module_text
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import PRECISIONS, TARGETS, phase_names, pipeline_for
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.input_files import InputFile, load_network, load_text, new_context
from mlirt.tools.kernel_text import EMITTERS, kernel_text
from mlirt.tools.output_files import check_output, write_output
from mlirt.tools.tool_main import tool_main


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0, or 1 for an error."""
    return tool_main("rt-translate", argv, _parse_arguments, _translate, _subject)


def _subject(arguments: argparse.Namespace) -> str:
    return "rt-translate" if arguments.print_pipeline else InputFile(arguments.input).name


def _parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("rt-translate", __doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--import-onnx",
        action="store_true",
        help="turn an ONNX model into IR text; with -o its weights are written beside it",
    )
    what.add_argument(
        "--emit-python", choices=EMITTERS, metavar="TARGET", help=f"turn kernel IR into source: {' or '.join(EMITTERS)}"
    )
    what.add_argument("--print-pipeline", action="store_true", help="print the compiler's pipeline for rt-opt -p")
    parser.add_argument("input", nargs="?", default="-", help="the file to read; - for standard input (default)")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write to a file instead of standard output")
    parser.add_argument("--target", choices=TARGETS, default="cpu", help="the target of the pipeline (default: cpu)")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="fp32", help="the precision of the pipeline (default: fp32)"
    )
    parser.add_argument(
        "--from", dest="first", metavar="PHASE", help=f"the first phase of the pipeline: {', '.join(phase_names())}"
    )
    parser.add_argument("--to", metavar="PHASE", help="the last phase of the pipeline, one of these too")
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of errors")
    arguments = parser.parse_args(argv)
    _check(arguments, parser.given(sys.argv[1:] if argv is None else argv))
    return arguments


def _check(arguments: argparse.Namespace, given: Collection[str]) -> None:
    if arguments.print_pipeline and "input" in given:
        raise InvalidInputError(f"--print-pipeline reads no file: leave {arguments.input} out")
    for name, flag in (("target", "--target"), ("precision", "--precision"), ("first", "--from"), ("to", "--to")):
        if name in given and not arguments.print_pipeline:
            raise InvalidInputError(f"{flag} is for --print-pipeline; rt-opt runs passes")


def _translate(arguments: argparse.Namespace) -> int:
    check_output(arguments.output)
    file = InputFile(arguments.input)
    if arguments.print_pipeline:
        phases = pipeline_for(arguments.target, arguments.precision, arguments.first, arguments.to)
        write_output(",".join(spec for _, specs in phases for spec in specs) + "\n", arguments.output)
    elif arguments.emit_python:
        module, _ = load_text(new_context(), file.read_text(), file)
        write_output(kernel_text(module, arguments.emit_python), arguments.output)
    else:
        _import_onnx(file, arguments.output)
    return 0


def _import_onnx(file: InputFile, output: str | None) -> None:
    """The text goes out last: where it is, its weights are."""
    if not file.is_onnx:
        raise InvalidInputError("expected a file whose name ends in .onnx")
    ctx = new_context()
    module = load_network(ctx, file)
    text = module_text(module, debuginfo=True)
    if output not in (None, "-") and not is_special(output):
        from mlirt.dialects.weights_file import write_weights

        write_weights(module, ctx, Path(output).with_suffix(".safetensors"))
    write_output(text, output)


if __name__ == "__main__":
    sys.exit(main())
