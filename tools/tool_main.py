"""What the tools but rt-exec do around their work: flags in, one line for an error, an exit code out."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

from mlirt.errors import MlirtError, missing_package, too_little_memory


def tool_main(
    name: str,
    argv: Sequence[str] | None,
    parse: Callable[[Sequence[str] | None], argparse.Namespace],
    work: Callable[[argparse.Namespace], int],
    subject: Callable[[argparse.Namespace], str],
) -> int:
    """Run a tool; the result is the exit code: that of `work`, 1 for an error, 130 if interrupted.

    An error begins with the file that `subject` names. Where the flags have `verbose` it ends with a traceback.
    """
    try:
        arguments = parse(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1  # --help
    except MlirtError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 1
    try:
        return work(arguments)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        from mlirt.command_line import reader_has_gone

        return reader_has_gone()
    except Exception as error:
        if isinstance(error, MlirtError):
            print(_line(error, subject(arguments)), file=sys.stderr)
        elif isinstance(error, ModuleNotFoundError):
            print(f"{name}: error: {missing_package(name, error)}", file=sys.stderr)
        elif isinstance(error, MemoryError):
            print(f"{subject(arguments)}: error: {too_little_memory(error)}", file=sys.stderr)
        else:
            print(f"{name}: {unforeseen(error, 'error: ')}", file=sys.stderr)
        if arguments.verbose:
            traceback.print_exc()
        return 1


def unforeseen(error: Exception, head: str = "") -> str:
    """One line for an unexpected error: `head`, message and place where a plugin raised it, else an internal error."""
    from mlirt.dialects.pass_plugins import place_in_plugin

    text, place = f"{type(error).__name__}: {' '.join(str(error).split())}", place_in_plugin(error)
    return f"{head}{text}{place}" if place else f"internal error: {text} (--verbose shows where)"


def _line(error: MlirtError, file: str) -> str:
    try:
        from mlirt.tools.diagnostic import diagnostic_of
    except ModuleNotFoundError:  # the compiler is not installed, so the error is none of its own
        return f"{file}: error: {error}"
    return str(diagnostic_of(error, file, None))
