"""Says in front of a kernel's source which launches run it and for which layers; compiled text has no such lines.

A kernel is compiled once for all layers that it fits, so its own text must not depend on them.
"""

from __future__ import annotations

from collections import defaultdict

from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.locations import names
from mlirt.dialects.plan.ops import LaunchOp

_SHOWN = 4
_LINE = 118


def launch_comments(module: ModuleOp) -> dict[str, str]:
    """For each kernel that a plan launches its lines of comment, each with its end; launches count from 0."""
    launches: dict[str, list[str]] = defaultdict(list)
    for number, op in enumerate(op for op in module.walk() if isinstance(op, LaunchOp)):
        layers = " + ".join(names(op.location)) or "a layer without a name"
        launches[op.kernel.string_value()].append(_shortened(f"# launch {number}: {layers}"))
    return {kernel: "".join(f"{line}\n" for line in _first_few(lines)) for kernel, lines in launches.items()}


def _first_few(lines: list[str]) -> list[str]:
    rest = len(lines) - _SHOWN
    return lines if rest <= 1 else [*lines[:_SHOWN], f"# and {rest} more launches"]


def _shortened(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 3]}..."
