"""What the build did and how long it took: phases and passes on a line, kernels from the cache, tactics, remarks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from mlirt.builder.html_page import html_table
from mlirt.tools.report.build_spans import Span
from mlirt.tools.report.subject import BuildFacts, Subject

if TYPE_CHECKING:
    from mlirt.tools.report.tactic_choices import TacticChoice

_WIDTH, _LANE, _LEFT = 1000, 26, 110
_MAX_REMARKS = 3000


def build_blocks(subject: Subject) -> Iterator[str]:
    """The sections of a plan that was built for the page: their HTML."""
    build = subject.build
    if build is None:
        return
    if build.spans:
        yield _timeline(build, len(subject.plan.manifest.kernels))
    if build.tactics:
        yield _tactics(build.tactics)
    if build.remarks:
        yield _remarks(build)


def _timeline(build: BuildFacts, kernels: int) -> str:
    end = max(span.end for span in build.spans)
    taken = "The whole plan was taken from the cache. " if build.is_cached else ""
    compiled = f"{len(build.compiled)} of {kernels} kernels were compiled, the others came from the kernel cache."
    by_phase: defaultdict[str, list[Span]] = defaultdict(list)
    for span in build.spans:
        by_phase[span.phase].append(span)
    rows = [
        (escape(span.phase), escape(span.what), f"{span.start:.3f}", f"{span.seconds * 1e3:.1f}")
        for span in sorted(build.spans, key=lambda one: -one.seconds)
    ]
    return (
        '<section id="build" class="far"><h2>Build</h2>'
        f"<p>{end:.2f} s. {taken}{compiled} "
        "Between passes the IR is checked.</p>"
        f"{_lanes(by_phase, end)}<details><summary>the same as a table</summary>"
        f"{html_table(['phase', 'pass or step', '#from (s)', '#ms'], rows)}</details></section>"
    )


def _lanes(by_phase: defaultdict[str, list[Span]], end: float) -> str:
    height, scale = _LANE * len(by_phase) + 22, (_WIDTH - _LEFT - 30) / (end or 1)
    parts = [f'<div class="wide"><svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="time line of the build">']
    for lane, (phase, spans) in enumerate(by_phase.items()):
        y = lane * _LANE
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 17}" text-anchor="end">{escape(phase)}</text>')
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y + _LANE}" y2="{y + _LANE}"/>')
        for number, span in enumerate(spans):
            about = escape(f"{span.what}: {span.seconds * 1e3:.1f} ms")
            parts.append(
                f'<rect class="{"halo" if number % 2 else "plain"}" x="{_LEFT + span.start * scale:.1f}" y="{y + 4}" '
                f'width="{max(span.seconds * scale, 0.6):.1f}" height="{_LANE - 8}"><title>{about}</title></rect>'
            )
    for tick in range(5):
        x = _LEFT + tick / 4 * end * scale
        parts.append(f'<text x="{x:.1f}" y="{height - 5}" text-anchor="middle">{tick / 4 * end:.2f} s</text>')
    return "\n".join([*parts, "</svg></div>"])


def _tactics(choices: Sequence[TacticChoice]) -> str:
    rows = [
        (
            escape(", ".join(" + ".join(names) for names in choice.layers)),
            f"<code>{escape(choice.op)}</code>",
            "<br>".join(_way(choice, name, cost) for name, cost in choice.estimates),
        )
        for choice in choices
    ]
    return (
        '<section id="tactics" class="far"><h2>Tactics</h2><p class="hint">For each fused op the ways to compute it, '
        "in the order in which lowering tries them, with the estimated time (µs) for usual shapes. One without an "
        "estimate is taken where it applies; one that was measured to be the fastest is marked.</p>"
        f"{html_table(['layers', 'op', 'considered'], rows)}</section>"
    )


def _way(choice: TacticChoice, name: str, estimate: float | None) -> str:
    text = f"<code>{escape(name)}</code> {choice.text(name, estimate)}"
    return f"<b>{text}</b>" if name == choice.chosen else text


def _remarks(build: BuildFacts) -> str:
    rows = [
        (escape(one.pass_name), one.kind, escape(one.layer), escape(one.reason)) for one in build.remarks[:_MAX_REMARKS]
    ]
    left_out = len(build.remarks) - len(rows)
    more = f" {left_out} more: rt-opt --remarks prints all." if left_out > 0 else ""
    return (
        '<section id="remarks" class="far"><h2>Remarks</h2><p class="hint">What passes did to layers, and why they '
        f"left others as they were.{more}</p><details><summary>{len(build.remarks)} remarks</summary>"
        f"{html_table(['pass', 'outcome', 'layer', 'reason'], rows)}</details></section>"
    )
