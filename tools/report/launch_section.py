"""The launches as a table with bars: what each computes, in which kernel, how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from mlirt.builder.html_page import html_table
from mlirt.runtime.bound_launch import Address, BoundArgument, BoundLaunch
from mlirt.runtime.expressions import to_text
from mlirt.runtime.manifest import Argument, BufferArgument, IntArgument
from mlirt.tools.report.launch_times import LaunchTime, total
from mlirt.tools.report.memory_map import bytes_text
from mlirt.tools.report.subject import Subject

_BAR = 140
_UNSTEADY = 0.5
_MAX_LAUNCHES_WITH_ARGUMENTS = 1000


def launch_block(subject: Subject) -> str:
    """The section with a row for each launch."""
    timed = ["#ms", "#quartiles", "bar"] if subject.times else []
    listed = [] if _is_large(subject) else ["arguments"]
    heads = ["#", "layer", "result", "kernel", *timed, "#moves", "#operations", *listed]
    names = [f"launch-{one.index}" for one in subject.binding.launches]
    table = html_table(heads, _rows(subject), names)
    return f'<section id="launches" class="far"><h2>Launches</h2>{_about(subject)}{table}</section>'


def _about(subject: Subject) -> str:
    if not subject.times:
        return (
            '<p class="hint">No times: give --profile FILE (from rt-exec --exportProfile), or let the launches run '
            "with --runs N.</p>"
        )
    unsteady = sum(one.spread > _UNSTEADY for one in subject.times)
    note = f" The quartiles of {unsteady} launches lie further apart than half their median." if unsteady else ""
    return (
        f'<p class="hint">Median of the runs of each launch, alone on the device; {total(subject.times):.3f} ms in all.'
        f" The line in a bar goes from the lower to the upper quartile.{note}</p>"
    )


def _rows(subject: Subject) -> Iterator[tuple[str, ...]]:
    manifest = subject.plan.manifest
    longest = max((one.median for one in subject.times or ()), default=0.0)
    for bound in subject.binding.launches:
        launch = manifest.launches[bound.index]
        kernel = manifest.kernels[launch.kernel]
        work = subject.works[bound.index]
        yield (
            str(bound.index),
            escape(launch.layer),
            "<br>".join(escape(one.known) for one in work.outputs),
            link(kernel.name, kernel.name),
            *(_time(subject.times[bound.index], longest) if subject.times else ()),
            "" if work.operations is None else bytes_text(work.bytes),
            "" if work.operations is None else f"{work.operations:,}",
            *([] if _is_large(subject) else [_listed(subject, bound)]),
        )


def _is_large(subject: Subject) -> bool:
    """Whether the arguments of all launches would be most of the page."""
    return len(subject.plan.manifest.launches) > _MAX_LAUNCHES_WITH_ARGUMENTS


def _listed(subject: Subject, bound: BoundLaunch) -> str:
    manifest = subject.plan.manifest
    launch = manifest.launches[bound.index]
    pairs = zip(launch.args, bound.args, strict=True)
    listed = "\n".join(f"{n:2} {_argument(arg, value)}" for n, (arg, value) in enumerate(pairs))
    if manifest.target.kind == "cuda":
        listed = f"grid {bound.grid}, block {manifest.kernels[launch.kernel].block}\n{listed}"
    return f"<details><summary>{len(launch.args)}</summary><pre>{escape(listed)}</pre></details>"


def _time(time: LaunchTime, longest: float) -> tuple[str, str, str]:
    places = (min(_BAR * ms / longest, 1.3 * _BAR) if longest else 0.0 for ms in (time.median, time.lower, time.upper))
    width, left, right = places
    whisker = f'<i style="left:{left:.0f}px;width:{max(right - left, 1):.0f}px"></i>'
    bar = f'<span class="bar" style="width:{width:.0f}px" aria-hidden="true">{whisker}</span>'
    return f"{time.median:.4f}", f"{time.lower:.4f} to {time.upper:.4f}", bar


def _argument(argument: Argument, value: BoundArgument) -> str:
    if isinstance(argument, BufferArgument):
        assert isinstance(value, Address)
        return f"buffer {argument.buffer} + {to_text(argument.offset)}"
    if isinstance(argument, IntArgument) and not isinstance(argument.value, int):
        return f"{to_text(argument.value)} = {value}"
    return str(value)


def link(name: str, target: str) -> str:
    """A link to something on the page."""
    return f'<a href="#{escape(target)}"><code>{escape(name)}</code></a>'
