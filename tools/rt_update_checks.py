"""rt-update-checks: writes the CHECK lines of tests in IR from what their RUN lines print."""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.tool_main import tool_main
from mlirt.tools.update_checks.functions import PrintedFunction, check_lines, functions_in
from mlirt.tools.update_checks.placement import NOTE, directive, joined, parts_of, with_checks, without_checks
from mlirt.tools.update_checks.run_lines import RunLine, run_lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0, or 1 for an error."""
    return tool_main("rt-update-checks", argv, _parse_arguments, _work, lambda arguments: "rt-update-checks")


def _parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("rt-update-checks", __doc__)
    parser.add_argument(
        "files", nargs="+", metavar="FILE.mlir", help="tests with RUN lines that end in `| filecheck %%s`"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace CHECK lines that were written by hand, which else are left"
    )
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of errors")
    return parser.parse_args(argv)


def _work(arguments: argparse.Namespace) -> int:
    for name in arguments.files:
        path = Path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{name}: cannot read the file: {_why(error)}") from error
        made = updated(path, text, overwrites=arguments.overwrite)
        if made != text:
            write_file(name, [made.encode()])
            print(f"wrote {name}")
    return 0


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else f"byte {error.start} is no text"


def updated(path: Path, text: str, *, overwrites: bool = False) -> str:
    """A test with the CHECK lines of today. Comments and RUN lines stay where they are.

    Raises `InvalidInputError` where CHECK lines were written by hand, unless it `overwrites` them, and where a RUN line
    cannot be run or prints no function.
    """
    runs = run_lines(path, text)
    prefixes = list(dict.fromkeys(run.prefix for run in runs))
    by_hand = NOTE not in text.splitlines() and any(map(directive(prefixes).match, text.splitlines()))
    if by_hand and not overwrites:
        raise InvalidInputError(f"{path}: its CHECK lines were written by hand; --overwrite replaces them")
    bare = without_checks(text, prefixes)
    splits = runs[0].splits_input
    if any(run.splits_input != splits for run in runs):
        raise InvalidInputError(f"{path}: all RUN lines must have --split-input-file, or none")
    parts = parts_of(bare) if splits else [bare]
    outputs = [run.output() for run in runs]
    blocks = _blocks(runs, outputs, len(parts))
    made = f"{NOTE}\n{joined([with_checks(part, block) for part, block in zip(parts, blocks, strict=True)])}"
    _prove(path, made, runs, outputs)
    return made


def _blocks(runs: Sequence[RunLine], outputs: Sequence[str], count: int) -> list[dict[str, list[str]]]:
    """For each part of a test the CHECK lines of each function, those of all prefixes together."""
    blocks = [dict[str, list[str]]() for _ in range(count)]
    known = dict[str, list[list[PrintedFunction]]]()
    for run, output in zip(runs, outputs, strict=True):
        printed = [functions_in(part) for part in (parts_of(output) if run.splits_input else [output])]
        if not any(printed) or len(printed) != count:
            raise InvalidInputError(
                f"{run.path}:{run.line}: expected it to print functions of IR for each part of the file"
            )
        if known.setdefault(run.prefix, printed) is not printed:
            if known[run.prefix] != printed:
                raise InvalidInputError(
                    f"{run.path}:{run.line}: prints something else than the RUN line before it with the prefix "
                    f"{run.prefix}: give it --check-prefix=NAME"
                )
            continue
        for block, functions in zip(blocks, printed, strict=True):
            for function in functions:
                block.setdefault(function.name, []).extend(check_lines(function, run.prefix))
    return blocks


def _prove(path: Path, made: str, runs: Sequence[RunLine], outputs: Sequence[str]) -> None:
    """Let filecheck read what was made; raises `InvalidInputError` where it does not match, and nothing is written."""
    filecheck = import_module("filecheck.main")
    with tempfile.TemporaryDirectory(prefix="mlirt-checks-") as folder:
        file = Path(folder) / path.name
        file.write_text(made, encoding="utf-8")
        for run, output in zip(runs, outputs, strict=True):
            stdin, sys.stdin = sys.stdin, io.StringIO(output)
            said = io.StringIO()
            try:
                with redirect_stdout(said), redirect_stderr(said):
                    code = filecheck.main(["filecheck", str(file), "--check-prefix", run.prefix])
            except SystemExit as stop:
                code = stop.code
            finally:
                sys.stdin = stdin
            if code:
                line = " ".join(said.getvalue().split())[:200]
                raise InvalidInputError(f"{path}:{run.line}: the lines that were made do not match: {line}")


if __name__ == "__main__":
    sys.exit(main())
