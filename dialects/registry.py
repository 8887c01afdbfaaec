"""The dialects that tools know: ours, found by their folder, and xDSL's; each is imported when its first op is met.

A folder `dialects/<name>/` is the dialect `<name>`; its `__init__.py` holds the `Dialect` as `Trt`, `Fused`, ...
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect

import mlirt.dialects.xdsl_compat  # pyright: ignore[reportUnusedImport]  # noqa: F401  (in place before any IR is made)

_HERE = Path(__file__).parent


def dialect_names() -> tuple[str, ...]:
    """The names of our own dialects, sorted."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/__init__.py")))


def load(name: str) -> Dialect:
    """Import one of our dialects."""
    return getattr(import_module(f"mlirt.dialects.{name}"), name.capitalize())


def factories() -> dict[str, Callable[[], Dialect]]:
    """Our dialects by name, not yet imported."""
    return {name: partial(load, name) for name in dialect_names()}


def register_dialects(ctx: Context) -> None:
    """Make our dialects and xDSL's known to a context without importing them."""
    known = set(ctx.registered_dialect_names)
    for name, factory in (get_all_dialects() | factories()).items():
        if name not in known:
            ctx.register_dialect(name, factory)
