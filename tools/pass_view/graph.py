"""Draws the ops of a place with their neighbours, before a pass and after it, side by side as one SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from mlirt.tools.pass_view.history import Place
from mlirt.tools.pass_view.snapshots import OpText

_WIDTH, _HEIGHT, _GAP = 190, 34, 22
_BEND = 26
_COLUMN = _WIDTH + 60
_MAX_NODES_IN_A_ROW = 9
_LETTERS = 28


def graph(place: Place, old: Mapping[int, OpText], new: Mapping[int, OpText], readers: Mapping[int, list[int]]) -> str:
    """The SVG: red boxes went, green ones came, orange ones were changed, grey ones stand around them.

    `old` and `new` are all ops around the pass by key, `readers` who reads an op, in either state.
    """
    gone = {op.key for op in place.removed}
    came = {op.key for op in place.inserted}
    edited = {one.key for one, _ in place.changed}
    before = _shown([op.key for op in place.before], old, readers)
    after = _shown([op.key for op in place.after], new, readers)
    columns = [(old, before, gone), (new, after, came)]
    parts: list[str] = []
    for number, (ops, keys, marked) in enumerate(columns):
        kind = "came" if number else "gone"
        kinds = {key: kind if key in marked else "edited" if key in edited else "near" for key in keys}
        parts += _column(ops, keys, kinds, number * _COLUMN + 1)  # where half of its border is seen
    rows = max(len(before), len(after), 1)
    height = rows * (_HEIGHT + _GAP)
    size = f'viewBox="0 0 {2 * _COLUMN - 20} {height}" width="{2 * _COLUMN - 20}" height="{height}"'
    return f'<svg class="graph" role="img" aria-label="ops before and after" {size}>{"".join(parts)}</svg>'


def _shown(keys: Sequence[int], ops: Mapping[int, OpText], readers: Mapping[int, list[int]]) -> list[int]:
    """The ops of a place in program order, with what they read and who reads them, constants left out."""
    near: dict[int, None] = dict.fromkeys(keys)
    for key in keys[:_MAX_NODES_IN_A_ROW]:
        sources = [one for one in ops[key].reads if one in ops and not _is_constant(ops[one])]
        near.update(dict.fromkeys(sources[:2]))
        near.update(dict.fromkeys([one for one in readers.get(key, ()) if one in ops][:2]))
    order = {key: number for number, key in enumerate(ops)}
    kept = [key for key in near if key in keys or not _is_constant(ops[key])]
    if len(kept) > _MAX_NODES_IN_A_ROW:
        kept = [key for key in kept if key in keys][:_MAX_NODES_IN_A_ROW]
    return sorted(kept, key=order.__getitem__)


def _is_constant(op: OpText) -> bool:
    return op.name.endswith(".constant")


def _column(ops: Mapping[int, OpText], keys: Sequence[int], kinds: Mapping[int, str], left: int) -> Iterator[str]:
    tops = {key: number * (_HEIGHT + _GAP) + 4 for number, key in enumerate(keys)}
    for key in keys:
        for source in ops[key].reads:
            if source in tops:
                yield _edge(left, tops[source] + _HEIGHT, tops[key], keys.index(key) - keys.index(source) == 1)
    for key in keys:
        op, top = ops[key], tops[key]
        name, layer = _name(op), " + ".join(op.layers) or _result(op)
        yield (
            f'<g class="{kinds[key]}"><title>{escape(f"{op.name}: {layer}")}</title>'
            f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
            f'<text x="{left + 8}" y="{top + 14}">{escape(_cut(name))}</text>'
            f'<text class="layer" x="{left + 8}" y="{top + 28}">{escape(_cut(layer))}</text></g>'
        )


def _edge(left: int, start: int, end: int, is_next: bool) -> str:
    """An arrow: straight down to the next box, else around those between."""
    x = left + _WIDTH // 2
    if is_next:
        line = f"M{x} {start}V{end - 4}"
    else:
        x, right = left + _WIDTH, left + _WIDTH + _BEND
        line = f"M{x} {start - _HEIGHT // 2}C{right} {start} {right} {end} {x + 5} {end + _HEIGHT // 2}"
        return f'<path class="edge" d="{line}"/><path class="head" d="M{x} {end + _HEIGHT // 2}l7 -4v8z"/>'
    return f'<path class="edge" d="{line}"/><path class="head" d="M{x} {end}l-4 -7h8z"/>'


def _name(op: OpText) -> str:
    """The op with the word behind its name that says what it does, as in `trt.activation relu`."""
    words = op.text.partition(op.name)[2].split(maxsplit=1)
    return f"{op.name} {words[0]}" if words and words[0].isalpha() else op.name


def _result(op: OpText) -> str:
    """What an op without a layer is known by: the name of its result."""
    head, equals, _ = op.text.partition("\n")[0].partition(" = ")
    return head if equals and head.startswith("%") else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 2]}.."
