"""The page of a dialect: every op and attribute with its meaning, constraints, syntax, operands and properties."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import IRDLOperation, OpDef, OptOperandDef, OptPropertyDef, OptResultDef, VarOperandDef, VarResultDef
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.tensor_op import TensorOp
from mlirt.tools.documentation.constraint_text import constraint_text
from mlirt.tools.documentation.docstring_text import first_sentence, to_markdown

_NOTICE = "<!-- Generated from the definitions by `make docs`; edit those. -->"


def dialect_page(dialect: Dialect) -> str:
    """The Markdown page of one of our dialects; links are relative to docs/dialects/."""
    package = import_module(f"mlirt.dialects.{dialect.name}")
    operations = sorted(dialect.operations, key=lambda op: op.name)
    attributes = sorted(
        (one for one in dialect.attributes if not issubclass(one, EnumAttribute)), key=lambda one: one.name
    )
    lines = [_NOTICE, "", f"# The `{dialect.name}` dialect", "", (inspect.getdoc(package) or "").strip(), ""]
    lines += ["| op | what it says |", "|---|---|"]
    lines += [f"| [`{op.name}`](#{_anchor(op.name)}) | {first_sentence(_docstring(op))} |" for op in operations]
    for op in operations:
        lines += ["", *_operation(op)]
    if attributes:
        lines += ["", "## Attributes and types", ""]
    for attribute in attributes:
        lines += [f"### `{attribute.name}`", "", *_attribute(attribute), ""]
    return "\n".join(lines).rstrip() + "\n"


def _docstring(op: type[Operation]) -> str:
    return inspect.getdoc(op) or ""


def _anchor(name: str) -> str:
    """What GitHub makes of a heading."""
    return name.replace(".", "")


def _operation(op: type[Operation]) -> Iterator[str]:
    yield f"## `{op.name}`"
    yield ""
    yield to_markdown(_docstring(op))
    yield ""
    if not issubclass(op, IRDLOperation):
        return
    definition = op.get_irdl_definition()
    if definition.assembly_format is not None:
        yield f"```text\n{op.name} {_one_line(definition.assembly_format)}\n```"
        yield ""
    rows = list(_rows(definition))
    if rows:
        yield "| | name | what it is | default |"
        yield "|---|---|---|---|"
        yield from rows
        yield ""
    yield _links(op)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _rows(definition: OpDef) -> Iterator[str]:
    for name, operand in definition.operands:
        optional = isinstance(operand, OptOperandDef)
        many = isinstance(operand, VarOperandDef) and not optional
        yield _row("operand", name, constraint_text(operand.constr), many, "optional" if optional else "")
    for name, prop in definition.properties.items():
        if name.endswith("SegmentSizes"):
            continue
        default = "optional" if isinstance(prop, OptPropertyDef) else ""
        if prop.default_value is not None:
            default = f"`{_value_text(prop.default_value)}`"
        yield _row("property", name, constraint_text(prop.constr), False, default)
    for name, result in definition.results:
        many = isinstance(result, VarResultDef) and not isinstance(result, OptResultDef)
        yield _row("result", name, constraint_text(result.constr), many, "")
    for name, _ in definition.regions:
        yield _row("region", name, "", False, "")


def _row(part: str, name: str, kind: str, many: bool, default: str) -> str:
    return f"| {part} | `{name}` | {kind}{', any number' if many else ''} | {default} |"


def _value_text(value: Attribute) -> str:
    """A default as one would write it: `0.5`, `1`, `transpose`."""
    if isinstance(value, EnumAttribute):
        return str(cast("EnumAttribute[StrEnum]", value).data)
    if isinstance(value, FloatAttr):
        return str(value.value.data)
    return str(value).removesuffix(" : i64")


def _links(op: type[Operation]) -> str:
    path = Path(inspect.getfile(op)).resolve()
    package = path.relative_to(path.parents[2])
    meaning = ", with its meaning in `reference()` and its types in `infer()`" if issubclass(op, TensorOp) else ""
    return f"Defined in [{package}](../../{package}){meaning}."


def _attribute(attribute: type[Attribute]) -> Sequence[str]:
    text = inspect.getdoc(attribute) if "__doc__" in vars(attribute) else None
    described = [to_markdown(text)] if text and not text.startswith(attribute.__name__) else []
    if issubclass(attribute, ParametrizedAttribute):
        names = [f"`{name}`" for name, _ in attribute.get_irdl_definition().parameters]
        described += [f"Parameters: {', '.join(names)}."] if names else []
    return ["\n\n".join(described) or "A mark without parameters."]
