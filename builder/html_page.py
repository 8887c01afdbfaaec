"""An HTML page that stands alone: nothing loaded, legible in the dark and in narrow windows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --plain: #6b9bd2; --special: #d9a441; --bar: #7fb685; --mark: #c0504d }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em }
h1 { margin-bottom: 0; overflow-wrap: anywhere } h2 { margin-top: 1.8em }
table { border-collapse: collapse } th { text-align: left } tr:target { background: #d9a44133 }
td, th { padding: .25em 1em .25em 0; border-bottom: 1px solid var(--line); vertical-align: top }
td { min-width: 2em } td:nth-child(2):not(.n) { min-width: 9em }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.wide { overflow-x: auto } .wide table { min-width: 100% } .wide svg { min-width: 640px }
code, pre, summary { font: 13px/1.6 ui-monospace, monospace } pre { overflow-x: auto } summary { cursor: pointer }
svg { width: 100%; height: auto; display: block } svg text { font-size: 12px; fill: currentColor }
svg line { stroke: var(--line) } svg text.on { fill: #222 }
a { color: inherit; text-decoration-color: #8888 }
"""


def html_page(title: str, blocks: Iterable[str], style: str = "", scripts: Sequence[str] = ()) -> str:
    """The page of a title and blocks of HTML; `style` adds to the sheet that all pages have.

    The page runs `scripts` and no other: its security policy names them by their digests.
    """
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style>"
    )
    body = "\n".join([f"<h1>{escape(title)}</h1>", *blocks])
    code = "".join(f"<script>{script}</script>\n" for script in scripts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>\n{body}\n</main>\n{code}</body></html>\n'


def _policy(scripts: Sequence[str]) -> str:
    digests = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed or repr('none')}"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], names: Sequence[str] = ()) -> str:
    """A table that scrolls where it is too wide.

    A head that starts with # marks a column of numbers; cells are HTML. `names` has something for a link to each row.
    """
    kinds = [' class="n"' if head.startswith("#") else "" for head in heads]
    top = "".join(
        f'<th scope="col"{kind}>{escape(head.lstrip("#") or head)}</th>'
        for head, kind in zip(heads, kinds, strict=True)
    )
    ids = [f' id="{escape(name)}"' for name in names]
    body = "\n".join(
        f"<tr{ids[number] if ids else ''}>"
        + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for number, row in enumerate(rows)
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'
