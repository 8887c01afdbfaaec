"""`python -m mlirt.tools.check_machine_code FILES`: does the code for GPUs wait for what it starts? Needs no GPU."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlirt.errors import InvalidInputError
from mlirt.tools.tool_main import tool_main

_NAME = "check_machine_code"
_MAX_PRINTED_VIOLATIONS = 4  # violations of a cubin that are printed


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m mlirt.tools.{_NAME}",
        description="Check on all paths of the machine code for NVIDIA GPUs that nothing uses what an asynchronous "
        "operation has not finished: wgmma, cp.async, copies by the device. mlirt/builder/machine_code/check.py says "
        "what is covered and what is not. Needs nvdisasm (pip install nvidia-cuda-nvdisasm) and no GPU.",
    )
    parser.add_argument("files", nargs="+", type=Path, help="plans, cubins, or folders of them")
    parser.add_argument(
        "--all", action="store_true", help=f"print all violations of a cubin, not {_MAX_PRINTED_VIOLATIONS}"
    )
    parser.add_argument("--verbose", action="store_true", help="a traceback for errors")
    return parser.parse_args(argv)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*") if one.is_file())
        else:
            yield path


def _check(arguments: argparse.Namespace) -> int:
    """Print violations and how many cubins there were; 1 where there is one."""
    from mlirt.builder.machine_code.check import faults_of_all
    from mlirt.builder.machine_code.cubins_in_files import cubins_in, is_asynchronous

    found, wrong = dict[bytes, Path](), 0
    for path in _files(arguments.files):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from error
        for cubin in cubins_in(data):
            found.setdefault(cubin, path)
    for path, faults in zip(found.values(), faults_of_all(list(found)), strict=True):
        wrong += bool(faults)
        for fault in faults if arguments.all else faults[:_MAX_PRINTED_VIOLATIONS]:
            print(f"{path}: {fault}")
    asynchronous = sum(map(is_asynchronous, found))
    print(f"{len(found)} cubins, {asynchronous} with asynchronous operations, {wrong} with violations")
    if not found:
        raise InvalidInputError("no code for NVIDIA GPUs was found; a plan for a CPU has none")
    return 1 if wrong else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0, or 1 where there is a violation or an error."""
    return tool_main(_NAME, argv, _parse, _check, lambda arguments: str(arguments.files[0]))


if __name__ == "__main__":
    sys.exit(main())
