"""Layers of plugins: ops that the table `CONVERSIONS` of a plugin makes launches of, in whichever dialect they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.ir import Operation

from mlirt.dialects.pass_plugins import active
from mlirt.errors import InvalidInputError


def brought_conversions() -> dict[type[Operation], Callable[[Any], None]]:
    """The tables `CONVERSIONS` of the plugins that count now."""
    table: dict[type[Operation], Callable[[Any], None]] = {}
    for plugin in active():
        brought = getattr(plugin.module, "CONVERSIONS", {})
        if not isinstance(brought, dict):
            raise InvalidInputError(f"{plugin.path}: CONVERSIONS: expected a table such as {{MyLayerOp: convert}}")
        table |= cast("dict[type[Operation], Callable[[Any], None]]", brought)
    return table


def level_of(op: Operation) -> str:
    """The dialect of an op; that of layers for those that plugins bring."""
    name = op.dialect_name()
    return "trt" if name != "trt" and active() and type(op) in brought_conversions() else name
