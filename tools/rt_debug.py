"""rt-debug: finds out where a network begins to compute something wrong: which tensor, which pass, which kernel."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.passes.phases import PRECISIONS, TARGETS
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.flag_values import positive, shapes
from mlirt.tools.output_files import check_output
from mlirt.tools.plugin_files import warn_on_standard_error
from mlirt.tools.research_flags import add_pass_plugin_flag, add_pipeline_edit_flag, pass_plugins
from mlirt.tools.terminal_styles import styled
from mlirt.tools.tool_main import tool_main

COMMANDS = {
    "compare": "compare each tensor of the compiled network, layer by layer",
    "bisect": "find the pass or the kernel that makes the outputs wrong, or crashes",
    "repeat": "find the launch whose result differs from run to run, or whose kernel does from build to build",
    "reduce": "write the smallest part of the network that still fails",
}
OF_COMMANDS = {
    "other": ("--with", ("compare",)),
    "json": ("--json", ("compare",)),
    "runs": ("--runs", ("repeat",)),
    "error": ("--error", ("reduce",)),
    "test": ("--test", ("reduce",)),
    "output": ("-o", ("bisect", "reduce")),
}
"""The flags of some of the commands, by the names of their values."""
OTHERS = ("interpreter", "reference", "onnxruntime")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0 where all is right, 1 for a difference, a crash or an error.

    A command (`argv` is None) works in a child. Where that crashes it begins again, with a child for each candidate.
    """
    from mlirt.tools.debugging.apart import HAS_CHILDREN, CrashedError, apart

    if argv is not None or not HAS_CHILDREN:
        return _main(argv)
    try:
        return apart(lambda: _main(None))
    except KeyboardInterrupt:
        print("rt-debug: interrupted", file=sys.stderr)
        return 130
    except CrashedError as crash:
        print(f"{crash}; from here on what may crash runs in processes of its own")
        return _main(None, in_children=True)


def _main(argv: Sequence[str] | None, *, in_children: bool = False) -> int:
    def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
        arguments = _parse_arguments(argv)
        arguments.in_children = in_children
        return arguments

    return tool_main("rt-debug", argv, parsed, _work, lambda arguments: arguments.model)


def _parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("rt-debug", __doc__)
    listed = "; ".join(f"{name}: {what}" for name, what in COMMANDS.items())
    parser.add_argument("command", choices=tuple(COMMANDS), help=listed)
    parser.add_argument("model", help="an ONNX model, or IR text of any phase up to fusion (.mlir)")
    parser.add_argument("--target", choices=TARGETS, default="cpu", help="what to build for (default: %(default)s)")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help=_PRECISION)
    parser.add_argument("--bound", type=float, default=1e-3, metavar="X", help=_BOUND)
    _add_inputs(parser)
    _add_commands(parser)
    add_pass_plugin_flag(parser.add_argument)
    add_pipeline_edit_flag(parser.add_argument)
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of errors")
    parser.add_argument("--quiet", action="store_true", help="print what was found alone, not the steps to it")
    arguments = parser.parse_args(argv)
    _check(arguments, parser.given(sys.argv[1:] if argv is None else argv))
    return arguments


def _add_commands(parser: argparse.ArgumentParser) -> None:
    """The flags of one command each."""
    parser.add_argument(
        "--with",
        dest="other",
        default="interpreter",
        metavar="WHAT",
        help="what to compare with: interpreter, tensor by tensor (default); or the outputs alone with reference, the "
        "network as it was read, with onnxruntime, or with a plan file",
    )
    parser.add_argument("--json", action="store_true", help="compare: print a JSON object in place of the table")
    parser.add_argument(
        "--runs",
        type=positive,
        default=24,
        metavar="N",
        help="repeat: how many runs are compared; default: %(default)s",
    )
    parser.add_argument("--error", metavar="TEXT", help="reduce: to fail is to end with an error that holds this text")
    parser.add_argument(
        "--test", metavar="PROGRAM", help="reduce: to fail is that PROGRAM FILE.mlir ends with exit code 0"
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE.mlir",
        help="reduce: the part, with weights and inputs beside it; bisect: the IR before the guilty pass",
    )


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        dest="input_arrays",
        metavar="SPEC",
        action="append",
        default=[],
        help="an array to run on: NAME=FILE.npy, NAME=FILE.npz, FILE.npz, NAME=random:SEED or NAME=zeros (default: "
        "random); may be given again",
    )
    parser.add_argument("--shapes", type=shapes, default={}, metavar="SPEC", help=_SHAPES)
    parser.add_argument("--weights", metavar="FILE", help="the safetensors file of the weights of IR")


def _check(arguments: argparse.Namespace, given: Collection[str]) -> None:
    for name, (flag, commands) in OF_COMMANDS.items():
        if name in given and arguments.command not in commands:
            raise InvalidInputError(f"{flag} is a flag of {' and '.join(commands)}, not of {arguments.command}")
    if not arguments.bound >= 0:
        raise InvalidInputError(f"--bound={arguments.bound}: expected a number that is not negative")
    if arguments.weights and not arguments.model.endswith(".mlir"):
        raise InvalidInputError("--weights is for IR: give FILE.mlir")
    if arguments.output and not arguments.output.endswith(".mlir"):
        raise InvalidInputError(f"-o {arguments.output}: expected a name that ends in .mlir")
    if arguments.command == "reduce" and not arguments.output:
        raise InvalidInputError("reduce writes the part that fails: add -o FILE.mlir")
    if arguments.test and not Path(arguments.test).is_file():
        raise InvalidInputError(f"--test={arguments.test}: there is no such file")


_SHAPES = "shapes of random inputs and zeros: input0:1x3x224x224,.. (default: 1 for what is open)"
_PRECISION = "the precision of the build (default: %(default)s)"
_BOUND = "the largest difference that is right, as a share of a tensor's largest number; default: %(default)s"


def _work(arguments: argparse.Namespace) -> int:
    check_output(arguments.output)
    with pass_plugins(arguments, warn_on_standard_error):
        commands = {"compare": _compare, "bisect": _bisect, "repeat": _repeat, "reduce": _reduce}
        if arguments.in_children and arguments.command in ("compare", "repeat"):
            return _find_crash(arguments)
        return commands[arguments.command](arguments)


def _compare(arguments: argparse.Namespace) -> int:
    from mlirt.tools.debugging import compare
    from mlirt.tools.debugging.case import Case

    case, other = Case.of(arguments), arguments.other
    if other == "interpreter":
        found = compare.compared_tensors(case)
    elif other == "reference":
        found = compare.compared_outputs(case, compare.reference_outputs(case))
    elif other == "onnxruntime":
        if not arguments.model.endswith(".onnx"):
            raise InvalidInputError("--with=onnxruntime is for ONNX models")
        found = compare.compared_outputs(case, compare.onnxruntime_outputs(arguments.model, case.feeds))
    else:
        from mlirt.runtime.engine import load

        if not Path(other).is_file():
            raise InvalidInputError(f"--with={other}: there is no such file{_or_a_word(other)}")
        try:
            outputs = load(other).run(dict(case.feeds))
        except MlirtError as error:
            raise InvalidInputError(f"--with={other}: {error}") from error
        found = compare.compared_outputs(case, outputs)
    if arguments.json:
        print(json.dumps({"bound": arguments.bound, "tensors": [asdict(one) for one in found]}, indent=1))
    else:
        lines = zip(compare.table(found, arguments.bound), compare.styles(found, arguments.bound), strict=True)
        print("\n".join(styled(line, style, sys.stdout) for line, style in lines))
    return 0 if compare.first_beyond(found, arguments.bound) is None else 1


def _or_a_word(other: str) -> str:
    """What `--with` may have meant instead of a plan file."""
    from difflib import get_close_matches

    near = get_close_matches(other, OTHERS, 1)
    return f"; did you mean {near[0]}?" if near else f"; expected {', '.join(OTHERS)} or a plan file"


def _bisect(arguments: argparse.Namespace) -> int:
    from mlirt.tools.debugging.bisect import bisect, write_case
    from mlirt.tools.debugging.case import Case

    case = Case.of(arguments)
    finding = bisect(case, arguments.bound, _steps(arguments))
    if finding is None:
        print("nothing is wrong within the bound")
        return 0
    print("\n".join(finding.lines()))
    if finding.kind == "pass":
        again = f"--pass-limit={finding.number - 1}"
        print(f"  rt-opt .. --to layout {again} is the last IR that is right")
        if arguments.output:
            print(f"  {write_case(case, finding, Path(arguments.output))}{_plugins(arguments)}")
    return 1


def _find_crash(arguments: argparse.Namespace) -> int:
    """What to compare there is not where a run crashes: the result is what does."""
    from mlirt.tools.debugging.case import Case
    from mlirt.tools.debugging.crashes import crash_in

    print("\n".join(crash_in(Case.of(arguments)).lines()))
    return 1


def _repeat(arguments: argparse.Namespace) -> int:
    from mlirt.tools.debugging.case import Case
    from mlirt.tools.debugging.repeat import repeat

    finding = repeat(Case.of(arguments), arguments.runs, print)
    if finding is None:
        return 0
    print("\n".join(finding.lines()))
    return 1


def _reduce(arguments: argparse.Namespace) -> int:
    from mlirt.tools.debugging import reduce
    from mlirt.tools.debugging.case import Case
    from mlirt.tools.debugging.crashes import crash_in

    case = Case.of(arguments)
    suspected: Sequence[str] = ()
    if arguments.test:
        test = reduce.script_says_so(arguments.test)
    elif arguments.error:
        test = reduce.fails_with(arguments.error)
    elif case.in_children and (crash := crash_in(case)).crash:
        print("\n".join(crash.lines()))
        test = reduce.crashes_after_passes() if crash.kind == "pass" else reduce.crashes()
        suspected = [name for layer in crash.layers for name in layer.split(" + ")]
    elif (after_passes := reduce.differs_after_passes(arguments.bound))(case):
        test = after_passes
    else:
        test, suspected = reduce.differs(arguments.bound), reduce.suspects(case, arguments.bound)
    found = reduce.reduced(case, test, _steps(arguments), suspected)
    path = reduce.write_network(found, Path(arguments.output))
    inputs = f" --input={quote(str(path.with_suffix('.npz')))}" if found.feeds else ""
    count = reduce.layer_count(found)
    again = f"rt-opt {quote(str(path))} --run={arguments.target}{inputs}{_plugins(arguments)}"
    print(f"{count} layer{'' if count == 1 else 's'}: {path}; {again}")
    return 0


def _steps(arguments: argparse.Namespace) -> Callable[[str], None]:
    """What prints the steps of a search."""
    return (lambda _: None) if arguments.quiet else print


def _plugins(arguments: argparse.Namespace) -> str:
    """The flags for the plugins, without which a command would not do the same."""
    return "".join(f" --load-pass-plugin={quote(file)}" for file in arguments.load_pass_plugin)


if __name__ == "__main__":
    sys.exit(main())
