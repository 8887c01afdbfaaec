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
from xdsl.ir import Dialect, Operation

import mlirt.dialects.xdsl_compat  # pyright: ignore[reportUnusedImport]  # noqa: F401  (in place before any IR is made)
from mlirt.dialects.pass_plugins import active
from mlirt.errors import InvalidInputError

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
    for name, factory in _with_plugins(get_all_dialects() | factories()).items():
        if name not in known:
            ctx.register_dialect(name, factory)


def _with_plugins(known: dict[str, Callable[[], Dialect]]) -> dict[str, Callable[[], Dialect]]:
    """These dialects and those of the plugins that count now, whose other ops join the dialects that they name.

    Raises `InvalidInputError` for a plugin's dialect of a name that is taken.
    """
    for plugin in active():
        own = list(plugin.objects(Dialect))
        for dialect in own:
            if dialect.name in known:
                raise InvalidInputError(
                    f"{plugin.path}: there is a dialect {dialect.name!r}; define an op {dialect.name}.. without a "
                    "Dialect to add it to that one"
                )
            known[dialect.name] = partial(_same, dialect)
        listed = {op for dialect in own for op in dialect.operations}
        named = [op for op in plugin.classes(Operation) if isinstance(op.__dict__.get("name"), str)]
        loose = [op for op in named if op not in listed]
        for name in sorted({op.dialect_name() for op in loose}):
            known[name] = partial(_joined, name, known.get(name), [op for op in loose if op.dialect_name() == name])
    return known


def _same(dialect: Dialect) -> Dialect:
    return dialect


def _joined(name: str, base: Callable[[], Dialect] | None, ops: list[type[Operation]]) -> Dialect:
    """A dialect with more ops."""
    if base is None:
        return Dialect(name, ops)
    found = base()
    return Dialect(name, [*found.operations, *ops], list(found.attributes))
