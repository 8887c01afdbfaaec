"""Writes the HTML page of a plan: what it is, its tensors, its memory over time, its launches and its kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from mlirt.runtime.expressions import to_text
from mlirt.runtime.manifest import Argument, BufferArgument, IntArgument, Kernel, Manifest, Tensor
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.shape_binding import Address, BoundArgument, ShapeBinding
from mlirt.tools.report.memory_map import bytes_text, memory_map

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --plain: #6b9bd2; --halo: #d9a441; --bar: #7fb685 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em }
h1 { margin-bottom: 0 } h2 { margin-top: 1.8em }
table { border-collapse: collapse; width: 100% } th { text-align: left }
td, th { padding: .25em .8em .25em 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
code, pre, summary { font: 13px/1.45 ui-monospace, monospace } pre { overflow-x: auto }
svg { width: 100%; height: auto } svg text { font-size: 12px; fill: currentColor } svg text.on { fill: #222 }
svg line { stroke: var(--line) } rect.plain { fill: var(--plain) } rect.halo { fill: var(--halo) }
.bar { display: inline-block; height: .7em; background: var(--bar) } summary { cursor: pointer }
"""


def page(
    plan: Plan, binding: ShapeBinding, times: Sequence[float] | None = None, sources: Mapping[str, str] | None = None
) -> str:
    """The page for the shapes of `binding`; `times` has the milliseconds of each launch, `sources` kernels' text."""
    manifest = plan.manifest
    blocks = [
        f"<h1>{escape(manifest.name)}</h1>",
        f"<p>{escape(_machine(manifest))}</p>",
        _table(["what", "#size"], _sizes(plan, binding)),
        "<h2>Inputs and outputs</h2>",
        _table(["", "name", "type", "shape", "here"], _tensors(manifest, binding)),
        "<h2>Memory</h2>",
        _memory(manifest, binding),
        "<h2>Launches</h2>",
        _table(
            ["#", "layer", "kernel", "arguments", *(["#ms", ""] if times else [])], _launches(manifest, binding, times)
        ),
        "<h2>Kernels</h2>",
        _table(["kernel", "#launches", "#code", "arguments"], _kernels(plan)),
        *_source_blocks(sources or {}),
    ]
    head = f'<meta charset="utf-8"><title>{escape(manifest.name)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(blocks) + "\n</body></html>\n"


def _machine(manifest: Manifest) -> str:
    target = manifest.target
    details = [f"{target.vector_bits}-bit vectors", *target.features] if target.kind == "cpu" else [target.arch]
    return f"Built by mlirt {manifest.mlirt} for {target.kind}: {', '.join(details)}. {target.triple}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A head that starts with # marks a column of numbers; cells are HTML."""
    kinds = [' class="n"' if head.startswith("#") else "" for head in heads]
    top = "".join(f"<th{kind}>{escape(head.lstrip('#') or head)}</th>" for head, kind in zip(heads, kinds, strict=True))
    body = "\n".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{top}</tr>\n{body}</table>"


def _sizes(plan: Plan, binding: ShapeBinding) -> Iterator[Sequence[str]]:
    yield "weights", bytes_text(sum(array.nbytes for array in plan.weights.values()))
    yield "object code", bytes_text(sum(len(memoryview(body)) for body in plan.sections.values()))
    yield "memory for these shapes, without inputs and outputs", bytes_text(binding.arena_bytes)
    yield "the same if no buffer shared memory", bytes_text(sum(binding.sizes[i] for i in binding.offsets))
    yield "launches", str(len(plan.manifest.launches))
    yield "kernels", str(len(plan.manifest.kernels))


def _tensors(manifest: Manifest, binding: ShapeBinding) -> Iterator[Sequence[str]]:
    inputs, outputs = manifest.given_inputs, manifest.outputs
    groups = (("input", inputs, binding.input_shapes), ("output", outputs, binding.output_shapes))
    for word, tensors, shapes in groups:
        for tensor, shape in zip(tensors, shapes, strict=True):
            yield word, f"<code>{escape(tensor.name)}</code>", escape(tensor.dtype), _shape(tensor), str(list(shape))


def _shape(tensor: Tensor) -> str:
    return escape(f"[{', '.join(to_text(dim) for dim in tensor.shape)}]")


def _memory(manifest: Manifest, binding: ShapeBinding) -> str:
    drawing = memory_map(manifest, binding)
    if not drawing:
        return "<p>The plan needs no memory besides inputs, outputs and weights.</p>"
    return (
        "<p>Launches from left to right, addresses from the bottom up. Orange buffers have a border of zeros and share "
        f"memory only with buffers of the same geometry. Each says more when pointed at.</p>\n{drawing}"
    )


def _launches(manifest: Manifest, binding: ShapeBinding, times: Sequence[float] | None) -> Iterator[Sequence[str]]:
    longest = max(times, default=0.0) if times else 0.0
    for bound in binding.launches:
        launch = manifest.launches[bound.index]
        kernel = manifest.kernels[launch.kernel]
        pairs = zip(launch.args, bound.args, strict=True)
        listed = "\n".join(f"{n:2} {_argument(arg, value)}" for n, (arg, value) in enumerate(pairs))
        if manifest.target.kind == "cuda":
            listed = f"grid {bound.grid}, block {kernel.block}\n{listed}"
        details = f"<details><summary>{len(launch.args)}</summary><pre>{escape(listed)}</pre></details>"
        row = [str(bound.index), escape(launch.layer), f"<code>{escape(kernel.name)}</code>", details]
        if times:
            width = 140 * times[bound.index] / longest if longest else 0
            row += [f"{times[bound.index]:.4f}", f'<span class="bar" style="width:{width:.0f}px"></span>']
        yield row


def _argument(argument: Argument, value: BoundArgument) -> str:
    if isinstance(argument, BufferArgument):
        assert isinstance(value, Address)
        return f"buffer {argument.buffer} + {to_text(argument.offset)}"
    if isinstance(argument, IntArgument) and not isinstance(argument.value, int):
        return f"{to_text(argument.value)} = {value}"
    return str(value)


def _kernels(plan: Plan) -> Iterator[Sequence[str]]:
    uses = Counter(launch.kernel for launch in plan.manifest.launches)
    for index, kernel in enumerate(plan.manifest.kernels):
        code = ", ".join(_code(plan, kernel))
        yield f"<code>{escape(kernel.name)}</code>", str(uses[index]), code, escape(" ".join(kernel.args))


def _code(plan: Plan, kernel: Kernel) -> Iterator[str]:
    for arch, section in kernel.objects.items():
        size = bytes_text(len(memoryview(plan.sections[section])))
        yield f"{escape(arch)}: {size}" if arch else size


def _source_blocks(sources: Mapping[str, str]) -> Iterator[str]:
    if sources:
        yield "<h2>Source of the kernels</h2>"
    for kernel, text in sources.items():
        yield f"<details><summary>{escape(kernel)}</summary><pre>{escape(text)}</pre></details>"
