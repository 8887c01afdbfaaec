"""For mkdocstrings: the lines `name: what it is` of a docstring, one for each parameter, become a list of Markdown."""

import re
from typing import Any

from griffe import Class, Extension, Function

_LINE = re.compile(r"^(?P<names>\w+(?:, \w+)*): (?=\S)")


class ParameterLists(Extension):
    """Named in mkdocs.yml; griffe calls it for everything that it reads."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        _rewrite(func, {one.name for one in func.parameters})

    def on_class(self, *, cls: Class, **_: Any) -> None:
        _rewrite(cls, {one.name for one in cls.parameters})


def _rewrite(owner: Class | Function, names: set[str]) -> None:
    if owner.docstring is None or not names:
        return
    lines: list[str] = []
    for line in owner.docstring.value.splitlines():
        found = _LINE.match(line)
        if found is not None and set(found["names"].split(", ")) & names:
            if lines and lines[-1].strip() and not lines[-1].startswith(("- ", " ")):
                lines.append("")
            bold = ", ".join(f"**{name}**" for name in found["names"].split(", "))
            line = f"- {bold}: {line[found.end() :]}"
        lines.append(line)
    owner.docstring.value = "\n".join(lines)
