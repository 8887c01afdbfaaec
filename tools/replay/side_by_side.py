"""Changed texts as an HTML page: the old one on the left, the new one on the right, a row for each line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from html import escape
from itertools import zip_longest

from mlirt.builder.html_page import html_page
from mlirt.tools.replay.comparison import ChangedText

_CONTEXT = 3  # lines around a change
_STYLE = """
main { max-width: none } .sides { table-layout: fixed; width: 100% }
.sides td { font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 .5em;
  border-bottom: 0; width: 50% }
.sides .old { background: #c0504d33 } .sides .new { background: #7fb68544 } .sides .gap td { color: #888 }
body { max-width: 1600px }
"""


def side_by_side(summary: str, texts: Sequence[ChangedText]) -> str:
    """The page; `summary` is the line below its title."""
    blocks = [f"<p>{escape(summary)}</p>", *(_block(text) for text in texts)]
    return html_page("What has changed", blocks, _STYLE)


def _block(text: ChangedText) -> str:
    more = "".join(f"<li>{escape(place)}</li>" for place in text.places[1:])
    others = f"<details><summary>and {len(text.places) - 1} more</summary><ul>{more}</ul></details>" if more else ""
    rows = "".join(_rows(text.old.splitlines(), text.new.splitlines()))
    return f'<h2>{escape(text.places[0])}</h2>{others}<table class="sides"><tbody>{rows}</tbody></table>'


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT)
    for number, group in enumerate(groups):
        if number:
            yield '<tr class="gap"><td>...</td><td>...</td></tr>'
        for tag, start, end, other_start, other_end in group:
            for left, right in zip_longest(old[start:end], new[other_start:other_end]):
                yield f"<tr>{_cell(left, tag, 'old')}{_cell(right, tag, 'new')}</tr>"


def _cell(line: str | None, tag: str, side: str) -> str:
    changed = f' class="{side}"' if tag != "equal" and line is not None else ""
    return f"<td{changed}>{escape(line or '')}</td>"
