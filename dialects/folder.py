"""A dialect is a folder: every op and attribute class in its files belongs to it."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from xdsl.ir import Attribute, Dialect, Operation


def dialect_from_folder(name: str, package: str, path: Sequence[str], extra: Sequence[str] = ()) -> Dialect:
    """The dialect `name`: the classes whose IR name starts with `name.`, from a package and from `extra` modules."""
    modules = [f"{package}.{entry.name}" for entry in pkgutil.iter_modules(path)] + list(extra)
    operations: dict[str, type[Operation]] = {}
    attributes: dict[str, type[Attribute]] = {}
    for module in sorted(modules):
        for found in _classes(import_module(module)):
            label = getattr(found, "name", None)
            if not isinstance(label, str) or not label.startswith(f"{name}."):
                continue
            if issubclass(found, Operation) and not inspect.isabstract(found):
                operations[label] = found
            elif issubclass(found, Attribute):
                attributes[label] = found
    return Dialect(name, list(operations.values()), list(attributes.values()))


def _classes(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if inspect.isclass(value)]
