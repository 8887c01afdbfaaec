"""Writes the HTML page of a plan: its network as a graph, tensors, launches, roofline, memory, build and kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from mlirt.builder.html_page import html_page, html_table
from mlirt.runtime.decisions import decisions
from mlirt.runtime.expressions import to_text
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.tools.report.build_section import build_blocks
from mlirt.tools.report.comparison import comparison_block
from mlirt.tools.report.graph_section import graph_block
from mlirt.tools.report.kernel_section import kernel_block
from mlirt.tools.report.launch_section import launch_block
from mlirt.tools.report.launch_times import total
from mlirt.tools.report.memory_map import bytes_text
from mlirt.tools.report.memory_section import memory_block
from mlirt.tools.report.quantization_section import quantization_block
from mlirt.tools.report.roofline import Peaks, roofline_block
from mlirt.tools.report.subject import Subject

_HERE = Path(__file__).parent
_HEADING = re.compile(r'<section id="(\w+)"[^>]*><h2>([^<]*)</h2>')


def page(subject: Subject, other: Subject | None = None, peaks: Peaks | None = None) -> str:
    """The page of a plan for the shapes that it is bound to; `other` is one to compare it with, layer by layer."""
    manifest = subject.plan.manifest
    sections = [
        graph_block(subject, other),
        _ends(subject),
        *([comparison_block(subject, other)] if other is not None else []),
        launch_block(subject),
        roofline_block(subject, peaks),
        memory_block(subject),
        quantization_block(subject),
        *_decisions(manifest),
        *build_blocks(subject),
        kernel_block(subject),
    ]
    blocks = [
        '<a class="skip" href="#launches">Skip to the launches as a table</a>',
        f"<p>{escape(_machine(manifest))}</p>",
        _tiles(subject),
        _navigation("".join(sections)),
        *sections,
    ]
    return html_page(manifest.name, blocks, _asset("page.css"), [_asset("graph.js"), _asset("tables.js")])


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _navigation(text: str) -> str:
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title in _HEADING.findall(text))
    return f'<nav aria-label="sections">{links}</nav>'


def _machine(manifest: Manifest) -> str:
    target = manifest.target
    details = [f"{target.vector_bits}-bit vectors", *target.features] if target.kind == "cpu" else [target.arch]
    return f"Built by mlirt {manifest.mlirt} for {target.kind}: {', '.join(details)}. {target.triple}"


def _tiles(subject: Subject) -> str:
    cells = "".join(f"<div><dt>{what}</dt><dd>{size}</dd></div>" for what, size in _sizes(subject))
    return f'<dl class="tiles">{cells}</dl>'


def _sizes(subject: Subject) -> Iterator[tuple[str, str]]:
    plan, binding = subject.plan, subject.binding
    if subject.times:
        yield "all launches, medians, each alone", f"{total(subject.times):.3f} ms"
    yield "launches", f"{len(plan.manifest.launches):,}"
    yield "kernels", f"{len(plan.manifest.kernels):,}"
    yield "weights", bytes_text(sum(array.nbytes for array in plan.weights.values()))
    yield "memory for these shapes", bytes_text(binding.arena_bytes)
    yield "if no buffer shared memory", bytes_text(sum(binding.sizes[i] for i in binding.offsets))
    yield "object code", bytes_text(sum(len(memoryview(body)) for body in plan.sections.values()))
    operations = sum(work.operations or 0 for work in subject.works)
    if operations:
        yield "operations", f"{operations / 1e6:,.1f} million"


def _ends(subject: Subject) -> str:
    table = html_table(["kind", "name", "type", "shape", "in this page"], _tensors(subject))
    return f'<section id="tensors"><h2>Inputs and outputs</h2>{table}</section>'


def _tensors(subject: Subject) -> Iterator[Sequence[str]]:
    manifest, binding = subject.plan.manifest, subject.binding
    groups = (
        ("input", manifest.given_inputs, binding.input_shapes),
        ("output", manifest.outputs, binding.output_shapes),
    )
    for word, tensors, shapes in groups:
        for tensor, shape in zip(tensors, shapes, strict=True):
            yield word, f"<code>{escape(tensor.name)}</code>", escape(tensor.dtype), _shape(tensor), str(list(shape))


def _shape(tensor: Tensor) -> str:
    return escape(f"[{', '.join(to_text(dim) for dim in tensor.shape)}]")


def _decisions(manifest: Manifest) -> Iterator[str]:
    found = decisions(manifest, on_device=True)
    if found:
        rows = ((one.kind, escape(", ".join(one.layers)), one.decided_by) for one in found)
        table = html_table(["kind", "layers inside", "decided by"], rows)
        yield f'<section id="decisions" class="far"><h2>Branches and loops</h2>{table}</section>'
