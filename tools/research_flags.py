"""The flags that the tools share for research on passes: plugins of passes, changes to the pipeline, remarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlirt.dialects.pass_plugins import PassPlugin, using

if TYPE_CHECKING:
    from mlirt.passes.remarks import Remarks


def add_pass_plugin_flag(add: Callable[..., object]) -> None:
    """The flag, for a parser or a group of one."""
    add(
        "--load-pass-plugin",
        metavar="FILE",
        action="append",
        default=[],
        help="a Python file with passes, ops, tactics or ONNX handlers of your own; may be given again",
    )


def add_pipeline_edit_flag(add: Callable[..., object]) -> None:
    """The flag, for a parser or a group of one."""
    add(
        "--pipeline-edit",
        metavar="EDIT",
        action="append",
        default=[],
        help="change the compiler's pipeline: after=PLACE:PASSES, before=PLACE:PASSES, replace=PLACE:PASSES or "
        "without=PLACE, where PLACE is PASS, PASS#2, PHASE/PASS or PHASE; may be given again",
    )


def add_remark_flags(add: Callable[..., object]) -> None:
    """The flags, for a parser or a group of one."""
    add(
        "--remarks",
        metavar="PASS",
        action="append",
        nargs="?",
        const="",
        default=[],
        help="print what became of each place where a pass could have acted, with the reason; --remarks=PASS for one "
        "pass, may be given again",
    )
    add("--statistics", action="store_true", help="print how often each pass acted and declined, and its ops")
    add("--remarks-output", metavar="FILE", help="write remarks and statistics as JSON")


def bare_remarks(argv: Sequence[str]) -> list[str]:
    """The flags with `--remarks` as `--remarks=`, so that it does not take the file behind it for a pass."""
    return ["--remarks=" if flag == "--remarks" else flag for flag in argv]


def asked_remarks(arguments: argparse.Namespace) -> Remarks | None:
    """What collects what the flags ask for; None where they ask for nothing.

    Raises `InvalidInputError` for a pass that there is not.
    """
    if not (arguments.remarks or arguments.statistics or arguments.remarks_output):
        return None
    from mlirt.passes import registry
    from mlirt.passes.remarks import Remarks

    for name in filter(None, arguments.remarks):
        registry.load(name)
    passes = () if "" in arguments.remarks else tuple(arguments.remarks)
    return Remarks(passes, statistics=bool(arguments.statistics or arguments.remarks_output))


def report_remarks(found: Remarks, arguments: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Say and write what was collected."""
    from mlirt.atomic_file import write_file

    if arguments.remarks:
        for line in found.text().splitlines():
            say(line)
    if arguments.statistics:
        for line in found.statistics_text().splitlines():
            say(line)
    if arguments.remarks_output:
        write_file(arguments.remarks_output, [found.json().encode()])


@contextmanager
def pass_plugins(arguments: argparse.Namespace, warn: Callable[[str], None]) -> Generator[None]:
    """The files of --load-pass-plugin count meanwhile; one that brings nothing is warned of.

    Raises `InvalidInputError` where a file cannot be executed, or has a pass of a name that is taken.
    """
    if not arguments.load_pass_plugin:
        yield
        return
    from mlirt.passes.registry import plugin_passes

    with using(arguments.load_pass_plugin, "--load-pass-plugin") as plugins:
        plugin_passes()
        for plugin in plugins:
            if not brings_something(plugin):
                warn(f"--load-pass-plugin={plugin.path} brings nothing: no ModulePass with a name, no op, ..")
        yield


def _has_equations(plugin: PassPlugin) -> bool:
    """Asked only where the file itself has imported what equations are."""
    if "mlirt.passes.rules.equality" not in sys.modules:
        return False
    from mlirt.passes.rules.equality import Equation

    return any(True for _ in plugin.objects(Equation))


def brings_something(plugin: PassPlugin) -> bool:
    """Whether a file has what a tool finds."""
    from xdsl.ir import Dialect, Operation

    from mlirt.kernels.lib.tactics.registry import plugin_tactics
    from mlirt.passes.registry import passes_of

    return bool(
        passes_of(plugin)
        or plugin.handlers
        or any(True for _ in plugin.classes(Operation))
        or any(True for _ in plugin.objects(Dialect))
        or hasattr(plugin.module, "CONVERSIONS")
        or any(True for _ in plugin.interpreters())
        or _has_equations(plugin)
        or plugin_tactics(plugin)
    )
