"""rt-report: writes a plan file as an HTML page: tensors, memory over time, launches, kernels; it runs none of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from mlirt.errors import InvalidInputError
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.plan_file import Plan, read_plan
from mlirt.runtime.shape_binding import bind_shapes
from mlirt.runtime.symbol_values import Shape
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.flag_values import shapes
from mlirt.tools.output_files import check_output, write_output
from mlirt.tools.plugin_files import add_plugins_flag, run_plugin_files, warn_on_standard_error
from mlirt.tools.report.kernel_sources import kernel_sources
from mlirt.tools.report.page import page
from mlirt.tools.research_flags import add_pass_plugin_flag, pass_plugins
from mlirt.tools.tool_main import tool_main


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
    parser.add_argument("plan", help="the plan file, or IR text of any phase (FILE.mlir), which is built")
    parser.add_argument("-o", dest="output", metavar="FILE", required=True, help="the page to write")
    parser.add_argument(
        "--shapes",
        type=shapes,
        default={},
        metavar="SPEC",
        help="shapes of the inputs: input0:1x3x224x224,.. (default: 1 each)",
    )
    parser.add_argument("--profile", metavar="FILE", help="times of the launches, from rt-exec --exportProfile")
    parser.add_argument("--source", metavar="FILE", help="source of the kernels, from rt-opt -t")
    for_ir = parser.add_argument_group("for IR").add_argument
    for_ir("--target", choices=("auto", "cpu", "cuda"), default="auto", help="what to build for (default: %(default)s)")
    for_ir("--from", dest="first", metavar="PHASE", help="the first phase to run (default: the dialects tell)")
    for_ir("--weights", metavar="FILE", help="the safetensors file of the weights (default: beside it)")
    add_pass_plugin_flag(for_ir)
    add_plugins_flag(parser.add_argument)
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of errors")
    return parser.parse_args(argv)


def _report(arguments: argparse.Namespace) -> str:
    plan = _plan(arguments)
    manifest = plan.manifest
    binding = bind_shapes(manifest, _shapes(manifest, arguments.shapes))
    times = _times(Path(arguments.profile), len(manifest.launches)) if arguments.profile else None
    names = [kernel.name for kernel in manifest.kernels]
    sources = kernel_sources(_text(Path(arguments.source)), names) if arguments.source else None
    return page(plan, binding, times, sources)


def _plan(arguments: argparse.Namespace) -> Plan:
    """The plan in the file, or the one that is built of IR."""
    if not arguments.plan.endswith(".mlir"):
        if arguments.first or arguments.weights or arguments.load_pass_plugin:
            raise InvalidInputError("--from, --weights and --load-pass-plugin are for IR: give FILE.mlir")
        return read_plan(arguments.plan)
    from mlirt.builder.compile import compile as build
    from mlirt.runtime.engine import Engine

    engine = build(arguments.plan, arguments.target, weights=arguments.weights, from_phase=arguments.first)
    assert isinstance(engine, Engine)
    return engine.plan


def _shapes(manifest: Manifest, given: Mapping[str, Sequence[int]]) -> list[Shape]:
    """The shape of each input: what was asked for, else with 1 for every symbol."""
    tensors = manifest.given_inputs
    unknown = given.keys() - {tensor.name for tensor in tensors}
    if unknown:
        raise InvalidInputError(f"there is no input {min(unknown)!r}: expected {[tensor.name for tensor in tensors]}")
    ones = {symbol.name: 1 for symbol in manifest.symbols}
    return [tuple(given.get(tensor.name, [evaluate(dim, ones) for dim in tensor.shape])) for tensor in tensors]


def _times(path: Path, launches: int) -> list[float]:
    """The median milliseconds of each launch; trtexec's older files have averages alone."""
    text = _text(path)
    try:
        records = json.loads(text)[1:]
        times = [_milliseconds(cast("Mapping[str, str]", record)) for record in records]
    except (ValueError, LookupError, TypeError) as error:
        raise InvalidInputError(f"{path}: expected what rt-exec --exportProfile writes") from error
    if len(times) != launches:
        raise InvalidInputError(f"{path}: has the times of {len(times)} launches, the plan has {launches}")
    return times


def _milliseconds(record: Mapping[str, str]) -> float:
    return float(record["medianMs"] if "medianMs" in record else record["averageMs"])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"cannot read {path}: byte {error.start} is no text") from error


if __name__ == "__main__":
    sys.exit(main())
