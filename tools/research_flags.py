"""The flags that the tools share for research on passes: plugins of passes, and changes to the pipeline."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator
from contextlib import contextmanager

from mlirt.dialects.pass_plugins import PassPlugin, using


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


def brings_something(plugin: PassPlugin) -> bool:
    """Whether a file has what a tool finds."""
    from xdsl.ir import Dialect, Operation

    from mlirt.passes.lowering.tactics import plugin_tactics
    from mlirt.passes.registry import passes_of

    return bool(
        passes_of(plugin)
        or plugin.handlers
        or any(True for _ in plugin.classes(Operation))
        or any(True for _ in plugin.objects(Dialect))
        or hasattr(plugin.module, "CONVERSIONS")
        or plugin_tactics(plugin)
    )
