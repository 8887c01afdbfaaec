"""Writes the page of rt-opt --html: each pass, the ops that it changed as a difference and a graph, its remarks."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from mlirt.builder.html_page import html_page
from mlirt.passes.remarks import Remark
from mlirt.tools.pass_view.graph import graph
from mlirt.tools.pass_view.history import PassRecord, Place
from mlirt.tools.pass_view.snapshots import OpText

_STYLE = """
body { max-width: 1500px }
:root { --gone: #b3261e; --came: #1b7f3b; --edited: #b26a00; --gone-bg: #b3261e1c; --came-bg: #1b7f3b1c }
@media (prefers-color-scheme: dark) {
  :root { --gone: #ff8a80; --came: #7fd99a; --edited: #ffc16b; --gone-bg: #ff8a8022; --came-bg: #7fd99a22 }
}
.filters { position: sticky; top: 0; background: Canvas; padding: .6em 0; display: flex; gap: 1em; flex-wrap: wrap;
  border-bottom: 1px solid var(--line); z-index: 1; align-items: center }
.filters input { font: inherit; padding: .2em .5em; width: 15em } .filters output { color: GrayText }
section.pass { border: 1px solid var(--line); border-radius: 8px; margin: 1em 0; padding: 0 1em }
section.pass > details > summary { padding: .6em 0; font-size: 15px } summary b { font-weight: 600 }
.pale { color: GrayText } .phase { float: right; color: GrayText }
.place { border-top: 1px solid var(--line); padding: .6em 0 } .place > summary { overflow-wrap: anywhere }
.sides { display: grid; grid-template-columns: minmax(0, 480px) minmax(0, 1fr); gap: 1.2em; align-items: start;
  margin: .5em 0 }
@media (max-width: 900px) { .sides { grid-template-columns: minmax(0, 1fr) } }
.diff { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.5 }
.diff del, .diff ins { text-decoration: none; display: block; padding: 0 .4em; border-left: 3px solid }
.diff del { background: var(--gone-bg); border-color: var(--gone) }
.diff ins { background: var(--came-bg); border-color: var(--came) }
.diff mark { color: inherit; background: none; font-weight: 700; text-decoration: underline }
.diff span { display: block; padding: 0 .4em; border-left: 3px solid transparent; color: GrayText }
svg.graph { width: auto; max-width: 100% } svg.graph rect { fill: Canvas; stroke: var(--line); stroke-width: 1.5 }
.graph .gone rect { stroke: var(--gone); fill: var(--gone-bg) } .graph .came rect { stroke: var(--came);
  fill: var(--came-bg) } .graph .edited rect { stroke: var(--edited) } .graph .near { opacity: .65 }
.graph .layer { opacity: .7 } .graph .edge { fill: none; stroke: #888 } .graph .head { fill: #888 }
ul.remarks { margin: .4em 0; padding-left: 0; list-style: none; overflow-wrap: anywhere }
.kind { font-weight: 600 } .applied { color: var(--came) } .declined { color: var(--edited) }
.missed { color: GrayText } .error { border: 2px solid var(--gone); padding: .5em 1em; border-radius: 8px }
"""

# Hides the passes and the places that do not have the words of the two fields.
_SCRIPT = """
const [byPass, byLayer, shown] = ["by-pass", "by-layer", "shown"].map(id => document.getElementById(id));
const passes = [...document.querySelectorAll("section.pass")];
function filter() {
  const name = byPass.value.trim().toLowerCase(), layer = byLayer.value.trim().toLowerCase();
  let places = 0, count = 0;
  for (const pass of passes) {
    let left = 0;
    for (const place of pass.querySelectorAll(".place")) {
      place.hidden = !place.dataset.layers.toLowerCase().includes(layer);
      left += place.hidden ? 0 : 1;
      if (layer && !place.hidden && left <= 6 && "open" in place) place.open = true;
    }
    pass.hidden = !pass.dataset.pass.toLowerCase().includes(name) || (layer && !left);
    if (!pass.hidden) { count++; places += left; }
    if (!pass.hidden && (name || layer)) pass.firstElementChild.open = true;
  }
  shown.value = `${count} ${count == 1 ? "pass" : "passes"}, ${places} ${places == 1 ? "place" : "places"}`;
}
byPass.addEventListener("input", filter); byLayer.addEventListener("input", filter); filter();
"""

_OPEN_PASSES, _OPEN_PLACES = 12, 6
_MAX_LINES = 60
_MAX_LISTED_REMARKS = 40
_CONTEXT = 2
_WORD = re.compile(r"\s+|[^\s,()<>{}=]+|.")


def page(title: str, passes: Sequence[PassRecord], error: str = "") -> str:
    """The page of a pipeline's passes; `error` is what it ended with, if it did not come to its end."""
    told = [one for one in passes if one.places or one.remarks]
    quiet = Counter(one.name for one in passes if not one.places and not one.remarks)
    changed = sum(bool(one.places) for one in passes)
    blocks = [
        f"<p>{len(passes)} passes ran, {changed} changed something. Red ops went, green ones came, orange ones were "
        "changed; grey ones stand around them. <code>--pass-limit=N</code> runs the passes up to number N.</p>",
        f'<p class="error">{escape(error)}</p>' if error else "",
        _filters(),
    ]
    opened = 0
    for record in told:
        blocks.append(_pass(record, is_open=bool(record.places) and opened < _OPEN_PASSES))
        opened += bool(record.places)
    if quiet:
        listed = ", ".join(f"{escape(name)}{f' ({count}x)' if count > 1 else ''}" for name, count in quiet.items())
        blocks.append(f"<h2>Changed and said nothing: {sum(quiet.values())}</h2><p>{listed}</p>")
    return html_page(title, blocks, _STYLE, [_SCRIPT])


def _filters() -> str:
    return (
        '<div class="filters"><label>pass <input id="by-pass" type="search" placeholder="fuse-"></label>'
        '<label>layer <input id="by-layer" type="search" placeholder="conv1"></label>'
        '<output id="shown"></output></div>'
    )


def _pass(record: PassRecord, is_open: bool) -> str:
    counts = Counter(remark.kind for remark in record.remarks)
    for place in record.places:
        counts.update(remark.kind for remark in place.remarks)
    said = ", ".join(f'<span class="{kind}">{count} {kind}</span>' for kind, count in sorted(counts.items()))
    places = (
        f"{len(record.places)} place{'' if len(record.places) == 1 else 's'}" if record.places else "changed nothing"
    )
    phase = f'<span class="phase">{escape(record.phase)}</span>' if record.phase else ""
    head = f'<b>{record.number}. {escape(record.spec)}</b> <span class="pale">{places}</span> {said}{phase}'
    old = {op.key: op for op in record.old}
    new = {op.key: op for op in record.new}
    readers = _readers(old, new)
    body = [_place(place, old, new, readers, number < _OPEN_PLACES) for number, place in enumerate(record.places)]
    rest = _other_remarks(record.remarks)
    return (
        f'<section class="pass" id="pass-{record.number}" data-pass="{escape(record.spec)}">'
        f"<details{' open' if is_open else ''}><summary>{head}</summary>{''.join(body)}{rest}</details></section>"
    )


def _readers(old: Mapping[int, OpText], new: Mapping[int, OpText]) -> dict[int, list[int]]:
    readers: dict[int, list[int]] = {}
    for op in (*old.values(), *new.values()):
        for source in op.reads:
            readers.setdefault(source, []).append(op.key)
    return readers


def _place(
    place: Place, old: Mapping[int, OpText], new: Mapping[int, OpText], readers: Mapping[int, list[int]], is_open: bool
) -> str:
    layers = escape(" ".join((*place.layers, *(one.layer for one in place.remarks))))
    remarks = "".join(_remark(one) for one in place.remarks)
    listed = f'<ul class="remarks">{remarks}</ul>' if remarks else ""
    return (
        f'<details class="place" data-layers="{layers}"{" open" if is_open else ""}>'
        f"<summary>{escape(_cut(place.title, 160))}</summary>{listed}"
        f'<div class="sides">{graph(place, old, new, readers)}'
        f'<pre class="diff">{"".join(_difference(place))}</pre></div></details>'
    )


def _remark(remark: Remark) -> str:
    reason = f": {escape(remark.reason)}" if remark.reason else ""
    what = escape(f"{remark.layer} ({remark.op})" if remark.layer != remark.op else remark.op)
    return f'<li><span class="kind {remark.kind}">{remark.kind}</span> {what}{reason}</li>'


def _other_remarks(remarks: Sequence[Remark]) -> str:
    """Those at ops that stayed what they were: a place each where a pass looked, so that filters find them too."""
    parts = [f'<div class="place" data-layers="{escape(one.layer)}"><ul class="remarks">{_remark(one)}</ul></div>'
             for one in remarks[:_MAX_LISTED_REMARKS]]  # fmt: skip
    left = Counter((one.kind, one.reason) for one in remarks[_MAX_LISTED_REMARKS:])
    parts += [
        f'<p class="pale">{count} more {kind}: {escape(reason)}</p>' for (kind, reason), count in left.most_common()
    ]
    return "".join(parts)


def _difference(place: Place) -> Iterator[str]:
    """The lines that went and that came; of a changed op those around them too."""
    for op in place.removed:
        yield from _lines("del", op.text.split("\n"))
    for op in place.inserted:
        yield from _lines("ins", op.text.split("\n"))
    for old, new in place.changed:
        yield from _changed_lines(old.text.split("\n"), new.text.split("\n"))


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        for kind, first, last, start, end in group:
            if kind == "equal":
                yield from _lines("span", old[first:last])
            elif last - first == end - start == 1:
                yield from _marked(old[first], new[start])
            else:
                yield from _lines("del", old[first:last])
                yield from _lines("ins", new[start:end])


def _marked(old: str, new: str) -> Iterator[str]:
    """Two lines of which one became the other, with the words marked that differ."""
    before, after = (_WORD.findall(line) for line in (old, new))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    sides: tuple[list[str], list[str]] = ([], [])
    for kind, first, last, start, end in matcher.get_opcodes():
        for side, words in zip(sides, (before[first:last], after[start:end]), strict=True):
            text = escape("".join(words))
            side.append(text if kind == "equal" or not text else f"<mark>{text}</mark>")
    yield f"<del>- {''.join(sides[0])}</del>"
    yield f"<ins>+ {''.join(sides[1])}</ins>"


def _lines(tag: str, lines: Sequence[str]) -> Iterator[str]:
    sign = {"del": "-", "ins": "+", "span": " "}[tag]
    yield from (f"<{tag}>{sign} {escape(line)}</{tag}>" for line in lines[:_MAX_LINES])
    if len(lines) > _MAX_LINES:
        yield f"<span>  .. {len(lines) - _MAX_LINES} more lines</span>"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 2]}.."
