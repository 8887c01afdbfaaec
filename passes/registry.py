"""The folder is the registry: a pass is found by its name, and imported only when it runs.

A file directly in a package (`passes/<package>/fuse_pointwise.py`) is the pass `fuse-pointwise` where it defines the
class `FusePointwisePass`; other files in a package are code that passes share, and so are folders inside of it. Files
of users (`--load-pass-plugin`, `plugins=`) bring more while they count. Where we have no pass of a name, xDSL's own
pass of that name is used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from xdsl.passes import ModulePass

from mlirt.dialects.pass_plugins import PassPlugin, active
from mlirt.errors import InvalidInputError

_HERE = Path(__file__).parent
PASS_NAME = re.compile(r"[A-Za-z0-9][\w-]*")


def class_name(pass_name: str) -> str:
    """`fuse-pointwise` -> `FusePointwisePass`."""
    return "".join(word.capitalize() for word in pass_name.split("-")) + "Pass"


@cache
def packages() -> tuple[Path, ...]:
    """The folders of passes. `rules` is none: it has what passes of all packages are made of."""
    return tuple(sorted(path.parent for path in _HERE.glob("*/__init__.py") if path.parent.name != "rules"))


def path_of(pass_name: str) -> Path | None:
    """The file of one of our passes; None where we have none of that name."""
    if "_" in pass_name:  # the name of the file, not of the pass
        return None
    for package in packages():
        path = package / f"{pass_name.replace('-', '_')}.py"
        if path.is_file() and _defines_pass(path):
            return path
    return None


def _defines_pass(path: Path) -> bool:
    return f"\nclass {class_name(name_of(path))}(" in path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.stem.replace("_", "-")


def pass_paths() -> Iterator[Path]:
    """The files of all our passes, package by package."""
    for package in packages():
        yield from (path for path in sorted(package.glob("*.py")) if path.stem != "__init__" and _defines_pass(path))


def pass_names() -> tuple[str, ...]:
    """The names of all our passes, sorted."""
    return tuple(sorted(name_of(path) for path in pass_paths()))


def load(pass_name: str) -> type[ModulePass]:
    """The class of a pass, a plugin's, ours or xDSL's.

    Raises `InvalidInputError` with near misses for an unknown name.
    """
    brought = plugin_passes()
    if pass_name in brought:
        return brought[pass_name]
    path = path_of(pass_name)
    if path is None:
        return _load_stock(pass_name)
    module = import_module(f"mlirt.passes.{path.parent.name}.{path.stem}")
    return getattr(module, class_name(pass_name))


def exists(pass_name: str) -> bool:
    return path_of(pass_name) is not None or pass_name in stock_passes() or pass_name in plugin_passes()


def plugin_passes() -> dict[str, type[ModulePass]]:
    """The passes by name of the plugins that count now.

    Raises `InvalidInputError` where one has the name of another pass: nobody could say which of them a pipeline means.
    """
    found: dict[str, type[ModulePass]] = {}
    for plugin in active():
        for pass_class in passes_of(plugin):
            name = pass_class.name
            if not PASS_NAME.fullmatch(name):
                raise InvalidInputError(
                    f"{plugin.path}: {pass_class.__name__} has the name {name!r}, which no pipeline can say; expected "
                    "letters, digits and '-', such as fuse-my-layers"
                )
            if name in found or path_of(name) is not None or name in stock_passes():
                raise InvalidInputError(f"{plugin.path}: there is another pass {name!r}; give this one its own name")
            found[name] = pass_class
    return found


def passes_of(plugin: PassPlugin) -> list[type[ModulePass]]:
    """The passes that a plugin's file defines: the classes with a name."""
    return [one for one in plugin.classes(ModulePass) if isinstance(one.__dict__.get("name"), str)]


@cache
def stock_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """xDSL's passes by name, not yet imported."""
    from xdsl.transforms import get_all_passes

    return get_all_passes()


def _load_stock(pass_name: str) -> type[ModulePass]:
    factory = stock_passes().get(pass_name)
    if factory is None:
        known = sorted({*pass_names(), *stock_passes(), *plugin_passes()})
        import difflib  # for mistakes alone: tools start without it

        near = difflib.get_close_matches(pass_name.replace("_", "-"), known, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; see rt-opt --list-passes"
        raise InvalidInputError(f"there is no pass {pass_name!r}{hint}")
    return factory()


def summary(text: str) -> str:
    """The first sentence of a description, on one line."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0] or "(no description)"


def description(path: Path) -> str:
    """The docstring of the pass in a file, read without importing it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wanted = class_name(name_of(path))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == wanted:
            return ast.get_docstring(node) or ast.get_docstring(tree) or ""
    return ""
