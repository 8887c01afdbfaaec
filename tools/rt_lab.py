"""rt-lab: tells what a pass gains: whether networks compute the same with it, where it acts, how their time changes."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.passes.phases import PRECISIONS, TARGETS
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.flag_values import number, shapes
from mlirt.tools.output_files import check_output, write_json, write_output
from mlirt.tools.research_flags import add_pipeline_edit_flag
from mlirt.tools.tool_main import tool_main

if TYPE_CHECKING:
    from mlirt.tools.lab.experiment import Experiment
    from mlirt.tools.lab.interleaving import Measured
    from mlirt.tools.lab.result import Result
    from mlirt.tools.lab.variants import Comparison


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0, or 1 where a network failed or computes something else."""
    return tool_main("rt-lab", argv, _parse_arguments, _work, lambda arguments: arguments.subject)


def _parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("rt-lab", __doc__)
    parser.add_argument(
        "subject",
        metavar="PASS_FILE",
        help="a Python file with passes or tactics of your own; or the name of a pass of the compiler, which is left "
        "out on the other side",
    )
    parser.add_argument("models", metavar="MODEL", nargs="+", help="ONNX models, or IR text of layers (.mlir)")
    add_pipeline_edit_flag(parser.add_argument)
    parser.add_argument("--target", choices=TARGETS, default="cpu", help="what to build for (default: %(default)s)")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help=_PRECISION)
    parser.add_argument(
        "--shapes",
        type=shapes,
        default={},
        metavar="SPEC",
        help="shapes of the inputs, of the models that have them: input0:1x3x224x224,..",
    )
    parser.add_argument(
        "--bound",
        type=number,
        metavar="X",
        help="the largest difference that is right, as a share of an output's largest number; default: 1e-3, and 2e-2 "
        "where less than float32 is permitted",
    )
    _add_measuring(parser)
    parser.add_argument("--json", metavar="FILE", help="write all numbers")
    parser.add_argument("--picture", metavar="FILE.svg", help="draw the ratios with their intervals")
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of errors")
    parser.add_argument("--quiet", action="store_true", help="print the results alone")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        if not Path(model).is_file():
            raise InvalidInputError(f"MODEL {model}: there is no such file")
    if arguments.picture and not arguments.picture.endswith(".svg"):
        raise InvalidInputError(f"--picture={arguments.picture}: expected a name that ends in .svg")
    if not arguments.resolution:
        raise InvalidInputError("--resolution=0: expected a number above 0, such as 0.01")
    if arguments.bound is None:
        arguments.bound = 1e-3 if arguments.precision == "fp32" else 2e-2
    return arguments


_PRECISION = "the precision of the builds (default: %(default)s)"


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=number, default=20.0, metavar="S", help="how long to measure a model; default: %(default)g"
    )
    parser.add_argument(
        "--resolution",
        type=number,
        default=0.01,
        metavar="X",
        help="stop earlier where the interval of the ratio is so narrow to either side; default: %(default)g",
    )
    parser.add_argument("--no-measure", action="store_true", help="compare, count and estimate alone")


def _work(arguments: argparse.Namespace) -> int:
    from mlirt.tools.lab.experiment import experiment_of
    from mlirt.tools.lab.picture import picture
    from mlirt.tools.lab.result import Summary

    for flag in ("json", "picture"):
        check_output(getattr(arguments, flag), flag)
    experiment = experiment_of(arguments.subject, arguments.pipeline_edit)
    device = _has_device(arguments.target)
    summary = Summary(_head(experiment, arguments, device), details=_details(experiment, arguments, device))
    names = _short_names(arguments.models)
    used: set[str] = set()
    for path, name in zip(arguments.models, names, strict=True):
        if sys.stderr.isatty() and not arguments.quiet:
            print(f"{name} ..", file=sys.stderr)
        summary.results.append(_result(experiment, arguments, path, name, device, used))
        gc.collect()  # IR is full of cycles, and the next network needs its memory
    print("\n".join(summary.lines()))
    if arguments.json:
        write_json(arguments.json, summary.record())
    if arguments.picture:
        write_output(picture(f"{experiment.name} on {arguments.target}", summary.results), arguments.picture)
    unknown = arguments.shapes.keys() - used
    if unknown and not summary.problems():
        raise InvalidInputError(
            f"--shapes: no model has an input {min(unknown)!r}; theirs are {', '.join(sorted(used))}"
        )
    return 1 if summary.problems() else 0


def _has_device(target: str) -> bool:
    from mlirt.builder.host import gpu_is_here

    return target == "cpu" or gpu_is_here()


def _head(experiment: Experiment, arguments: argparse.Namespace, device: bool) -> list[str]:
    lines = [f"{experiment.name}, {arguments.target} {arguments.precision}: {experiment.place}"]
    if not device:
        lines.append("no CUDA device is here: outputs are interpreted, times are estimates and none is measured")
    return lines


def _details(experiment: Experiment, arguments: argparse.Namespace, device: bool) -> dict[str, object]:
    sides = {side: [str(edit) for edit in pipeline.edits] for side, pipeline in experiment.pipelines.items()}
    flags = {name: getattr(arguments, name) for name in ("target", "precision", "bound", "seconds", "resolution")}
    return {"subject": experiment.name, "passes": list(experiment.passes), "edits": sides, "device": device, **flags}


def _short_names(paths: Sequence[str]) -> list[str]:
    """The file names, or those with the folder where two would be the same, as in `a/model.onnx` and `b/model.onnx`."""
    names = [Path(path).name for path in paths]
    if len(set(names)) == len(names):
        return names
    parents = [f"{Path(path).parent.name}/{Path(path).name}" for path in paths]
    return parents if len(set(parents)) == len(parents) else list(paths)


def _result(
    experiment: Experiment, arguments: argparse.Namespace, path: str, name: str, device: bool, used: set[str]
) -> Result:
    """What one model shows; its error where it cannot be compiled or run, so that the others are seen all the same."""
    from mlirt.tools.lab.result import Result
    from mlirt.tools.lab.variants import compare

    try:
        found = compare(experiment, arguments, path, device, used)
        wrong = _wrong(found, arguments.bound)
        measured = None
        if device and not wrong and not found.is_same and not arguments.no_measure:
            measured = _measured(found, arguments)
    except MlirtError as error:
        if arguments.verbose:
            raise
        return Result(name, error=" ".join(str(error).split()))
    counts = found.counts(experiment.passes)
    return Result(
        name,
        wrong=wrong,
        off_reference=found.off_reference.error,
        off_without=found.off_without.error,
        **{key: getattr(counts, key) for key in ("applied", "declined", "missed", "inserted", "erased")},
        reasons=[(*key, count) for key, count in found.reasons(experiment.passes).most_common()],
        without=found.sides["without"].costs,
        with_=found.sides["with"].costs,
        measured=measured,
        same=found.is_same,
    )


def _wrong(found: Comparison, bound: float) -> str:
    """The output that the passes make wrong, and how far it is off; empty where there is none."""
    off, without = found.off_reference, found.off_without
    if off.error > bound:
        also = found.baseline_off.error
        hint = f"; without the pass it is {also:.3g} off" if also > bound else "; rt-debug bisect tells where"
        return f"output {off.output} is {off.error:.3g} off the interpreted network, the bound is {bound:g}{hint}"
    if without.error > bound:
        return f"output {without.output} is {without.error:.3g} off the one without the pass, the bound is {bound:g}"
    return ""


def _measured(found: Comparison, arguments: argparse.Namespace) -> Measured:
    from mlirt.tools.lab.engines import open_both
    from mlirt.tools.lab.interleaving import measure

    plans = [found.sides[side].plan for side in ("without", "with")]
    assert plans[0] is not None
    assert plans[1] is not None
    return measure(open_both(plans[0], plans[1], found.case.feeds), arguments.seconds, arguments.resolution)


if __name__ == "__main__":
    sys.exit(main())
