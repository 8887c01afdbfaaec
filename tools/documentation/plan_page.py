"""The page of the plan file: its layout, and all records of the manifest, from the fields that the reader reads."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator

from mlirt.runtime import plan_file
from mlirt.runtime.manifest import FORMAT, Manifest
from mlirt.runtime.record_schema import REQUIRED, JsonField, json_fields, records_of
from mlirt.tools.documentation.docstring_text import to_markdown
from mlirt.tools.documentation.field_texts import field_texts

_HEAD = """\
# The plan file

```text
{layout}
```

## The manifest

A JSON object, the record `Manifest` of format {format}, made of the records below. A formula is a whole number, the
name of a symbol, or `[op, a, b]` with one of `+ - * // % max min broadcast`. What is absent or null has its default; a
field without one has to be there. Whatever is damaged is refused in one line that names the field by its path, such as
`buffers[3].bytes`, before anything of the plan is used. The classes are in `runtime/`; the reader, the builder's writer
and this page follow from their fields.
"""


def plan_page() -> str:
    """The whole page."""
    layout = inspect.cleandoc(plan_file.__doc__ or "").split("Layout", 1)[1]
    head = _HEAD.format(layout=f"Layout{layout}".strip(), format=FORMAT)
    return head + "".join(f"\n## {record.__name__}\n\n{_section(record)}\n" for record in records_of(Manifest))


def _section(record: type) -> str:
    texts = field_texts(record)
    rows = [_row(one, only, texts.get(one.name, "")) for one, only in _fields(record)]
    table = "\n".join(["| field | value | default | meaning |", "|---|---|---|---|", *rows])
    return f"{to_markdown(inspect.getdoc(record) or '')}\n\n{table}"


def _fields(record: type) -> Iterator[tuple[JsonField, str]]:
    """The fields in their order, and the list whose records alone have one."""
    sides = {side: json_fields(record, side) for side in ("inputs", "outputs")}
    for one in sides["inputs"]:
        yield one, "" if one in sides["outputs"] else "inputs"
    yield from ((one, "outputs") for one in sides["outputs"] if one not in sides["inputs"])


def _row(one: JsonField, only: str, text: str) -> str:
    value = one.kind.text.replace("|", "\\\\|")
    key = f"the fields of {one.kind.text}" if one.is_inline else f"`{one.key}`"
    meaning = " ".join(to_markdown(text).split()) + (f" Of {only} alone." if only else "")
    return f"| {key} | {'' if one.is_inline else value} | {_default(one)} | {meaning.strip()} |"


def _default(one: JsonField) -> str:
    if one.is_inline or one.default is REQUIRED:
        return ""
    if callable(one.default):
        text = to_markdown(inspect.getdoc(one.default) or "").removesuffix(".")
        return text[:1].lower() + text[1:]
    return f"`{json.dumps(one.default)}`"
