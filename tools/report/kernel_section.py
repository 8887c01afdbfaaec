"""The kernels: how often each is launched, how long all its launches take, its code, and its IR beside its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from html import escape
from itertools import groupby

from mlirt.builder.html_page import html_table
from mlirt.runtime.manifest import Kernel
from mlirt.runtime.plan_file import Plan
from mlirt.tools.report.kernel_texts import KernelText
from mlirt.tools.report.launch_section import link
from mlirt.tools.report.memory_map import bytes_text
from mlirt.tools.report.subject import Subject


def kernel_block(subject: Subject) -> str:
    """The section with a row for each kernel, and the texts that are known."""
    timed = ["#ms"] if subject.times else []
    names = [kernel.name for kernel in subject.plan.manifest.kernels]
    table = html_table(["kernel", "#launches", *timed, "#code", "arguments"], _rows(subject), names)
    texts = "\n".join(_texts(subject))
    return f'<section id="kernels" class="far"><h2>Kernels</h2>{table}{texts}</section>'


def _rows(subject: Subject) -> Iterator[Sequence[str]]:
    """The kernel of each row is known by its name in the page, its text by that and a word."""
    plan = subject.plan
    launches = plan.manifest.launches
    uses = Counter(launch.kernel for launch in launches)
    spent = [0.0] * len(plan.manifest.kernels)
    for number, launch in enumerate(launches):
        spent[launch.kernel] += subject.times[number].median if subject.times else 0.0
    for index, kernel in enumerate(plan.manifest.kernels):
        code = ", ".join(_code(plan, kernel))
        name = f"<code>{escape(kernel.name)}</code>"
        if kernel.name in _shown(subject):
            name = link(kernel.name, f"source-{kernel.name}")
        timed = [f"{spent[index]:.4f}"] if subject.times else []
        yield name, str(uses[index]), *timed, code, escape(_counted(kernel.args))


def _counted(kinds: Sequence[str]) -> str:
    """The kinds of arguments in their order, equal neighbours together: `ptr, 17 i64, 2 ptr`."""
    runs = [(kind, len(list(run))) for kind, run in groupby(kinds)]
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in runs)


def _code(plan: Plan, kernel: Kernel) -> Iterator[str]:
    for arch, section in kernel.objects.items():
        size = bytes_text(len(memoryview(plan.sections[section])))
        yield f"{escape(arch)}: {size}" if arch else size


def _shown(subject: Subject) -> Collection[str]:
    """The kernels of which there is any text."""
    return {*subject.kernels, *subject.code.texts}


def _texts(subject: Subject) -> Iterator[str]:
    shown = [kernel.name for kernel in subject.plan.manifest.kernels if kernel.name in _shown(subject)]
    if shown:
        yield "<h3>Text of the kernels</h3>"
    if subject.code.missing:
        yield f'<p class="note">{escape(subject.code.missing)}</p>'
    for name in shown:
        text = subject.kernels.get(name, KernelText())
        forms = [("IR", text.ir), ("source", text.source), ("machine code", subject.code.texts.get(name, ""))]
        columns = [
            f'<div><h4>{what}</h4><pre class="code" tabindex="0">{escape(one)}</pre></div>'
            for what, one in forms
            if one
        ]
        body = f'<div class="beside">{"".join(columns)}</div>' if len(columns) > 1 else "".join(columns)
        yield f'<details id="source-{escape(name)}"><summary>{escape(name)}</summary>{body}</details>'
