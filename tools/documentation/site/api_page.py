"""The reference of the Python API: which public names it has, in which order; mkdocstrings writes their texts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import mlirt

_HEAD = """\
# The Python API

The names of `import mlirt`. TensorRT's names are here as well ([which](network-api.md)); the settings of a build have a
[page of their own](build-config.md), and what each error says is on [another](errors.md).
"""
_GROUPS = ("Functions", "Classes", "Errors and warnings")


def api_page() -> str:
    """The page, in Markdown with directives of mkdocstrings."""
    groups: dict[str, list[str]] = {title: [] for title in _GROUPS}
    for name, value in _public():
        groups[_group(value)].append(_directive(name, value))
    sections = (f"\n## {title}\n\n" + "\n".join(parts) for title, parts in groups.items())
    return _HEAD + "".join(sections)


def _public() -> Iterator[tuple[str, object]]:
    for name in mlirt.__all__:
        value = getattr(mlirt, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            yield name, value


def _group(value: object) -> str:
    if not inspect.isclass(value):
        return _GROUPS[0]
    return _GROUPS[2] if issubclass(value, Exception) else _GROUPS[1]


def _directive(name: str, value: object) -> str:
    module = inspect.getmodule(value)
    home = f"{module.__name__ if module else 'mlirt'}.{name}"
    return f"::: {home}\n    options:\n      heading: mlirt.{name}\n      toc_label: {name}\n"
