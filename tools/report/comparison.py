"""Two engines layer by layer: the smallest groups of launches that compute the same layers in both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from mlirt.builder.html_page import html_table
from mlirt.tools.report.launch_section import link
from mlirt.tools.report.launch_times import total
from mlirt.tools.report.memory_map import bytes_text
from mlirt.tools.report.subject import Subject

_EQUAL = 0.05


@dataclass(frozen=True)
class Group:
    """Layers, and the launches of either engine that have to do with them."""

    layers: tuple[str, ...]
    ours: tuple[int, ...]
    theirs: tuple[int, ...]


def groups(ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]) -> list[Group]:
    """Launches share a group where a layer is in both, in the order of our launches; the layers of each are given."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for layers in (*ours, *theirs):
        for name in layers:
            root[find(name)] = find(layers[0])
    members: defaultdict[str, tuple[dict[str, None], list[int], list[int]]] = defaultdict(lambda: ({}, [], []))
    for side, launches in enumerate((ours, theirs)):
        for number, layers in enumerate(launches):
            if layers:
                group = members[find(layers[0])]
                group[0].update(dict.fromkeys(layers))
                (group[1] if side == 0 else group[2]).append(number)
    return [Group(tuple(names), tuple(mine), tuple(others)) for names, mine, others in members.values()]


def comparison_block(subject: Subject, other: Subject) -> str:
    """The section with a row for each group; the first engine's times over the other's."""
    found = groups(subject.layers, other.layers)
    times = subject.times and other.times
    heads = ["layers", "kernels here", f"kernels of {other.label}", "#bytes moved here", "#there"]
    heads += ["#ms here", "#there", "#here / there"] if times else []
    rows = [[*_cells(group, subject, other), *(_times(group, subject, other) if times else ())] for group in found]
    return (
        f'<section id="comparison" class="far"><h2>Compared with {escape(other.label)}</h2>'
        f'<p>{_summary(subject, other)}</p><p class="hint">Each row has the fewest layers that both engines compute in '
        "launches of their own. Times are medians; a ratio between the quartiles is grey.</p>"
        f"{html_table(heads, rows)}</section>"
    )


def _summary(subject: Subject, other: Subject) -> str:
    mine, theirs = subject.plan.manifest, other.plan.manifest
    parts = [
        f"{len(mine.launches)} launches here, {len(theirs.launches)} there",
        f"{bytes_text(subject.binding.arena_bytes)} of memory here, {bytes_text(other.binding.arena_bytes)} there",
    ]
    if subject.times and other.times:
        here, there = total(subject.times), total(other.times)
        parts.append(f"{here:.3f} ms here, {there:.3f} ms there: {here / there if there else 0:.2f}")
    return "; ".join(parts) + "."


def _cells(group: Group, subject: Subject, other: Subject) -> Iterator[str]:
    yield escape(" + ".join(group.layers))
    for side, numbers in ((subject, group.ours), (other, group.theirs)):
        manifest = side.plan.manifest
        kernels = [manifest.kernels[manifest.launches[number].kernel].name for number in numbers]
        if side is subject:
            yield "<br>".join(link(name, f"launch-{number}") for name, number in zip(kernels, numbers, strict=True))
        else:
            yield "<br>".join(f"<code>{escape(name)}</code>" for name in kernels)
    yield bytes_text(sum(subject.works[number].bytes for number in group.ours))
    yield bytes_text(sum(other.works[number].bytes for number in group.theirs))


def _times(group: Group, subject: Subject, other: Subject) -> Iterator[str]:
    assert subject.times is not None
    assert other.times is not None
    mine = [subject.times[number] for number in group.ours]
    theirs = [other.times[number] for number in group.theirs]
    here, there = total(mine), total(theirs)
    yield f"{here:.4f}"
    yield f"{there:.4f}"
    if not here or not there:
        yield ""
        return
    low, high = sum(one.lower for one in mine), sum(one.upper for one in mine)
    apart = high < sum(one.lower for one in theirs) or low > sum(one.upper for one in theirs)
    kind = "hint" if not apart or abs(here / there - 1) < _EQUAL else "better" if here < there else "worse"
    yield f'<span class="{kind}">{here / there:.2f}</span>'
