"""Pieces of HTML for notebooks: they stand in somebody else's page, so they bring no style sheet and no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.runtime.engine_interface import EngineLike

_BAR_WIDTH = 120


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a caption; a head that starts with # marks a column of numbers. Cells are escaped, but `Markup`."""
    align = ["right" if head.startswith("#") else "left" for head in heads]
    top = "".join(
        f'<th style="text-align:{side}">{escape(head.lstrip("#"))}</th>'
        for head, side in zip(heads, align, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row, align))}</tr>" for row in rows)
    title = f'<caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>'
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def bar(share: float) -> Markup:
    """A bar of a share of 1."""
    width = round(_BAR_WIDTH * min(max(share, 0.0), 1.0))
    return Markup(f'<div style="width:{width}px;height:.8em;background:#2b7a78" title="{share:.0%}"></div>')


def engine_html(engine: EngineLike) -> str:
    """An engine: its inputs and outputs, and of how many layers it is made."""
    ends = [("input", one) for one in engine.inputs] + [("output", one) for one in engine.outputs]
    rows = [(kind, one.name, one.dtype, " x ".join(map(str, one.shape)) or "scalar") for kind, one in ends]
    count, target = len(engine.layers), getattr(engine, "target", "")
    caption = f"Engine {engine.name}{f' for {target}' * bool(target)}, {count} layer{'' if count == 1 else 's'}"
    return table(caption, ("", "name", "type", "shape"), rows)


def _cell(text: str, side: str) -> str:
    return f'<td style="text-align:{side}">{text if isinstance(text, Markup) else escape(text)}</td>'
