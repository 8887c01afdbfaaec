"""Writes the HTML page of a plan: what it is, its tensors, its memory over time, its launches and its kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from mlirt.builder.html_page import html_page, html_table
from mlirt.runtime.bound_launch import Address, BoundArgument
from mlirt.runtime.decisions import decisions
from mlirt.runtime.expressions import to_text
from mlirt.runtime.manifest import Argument, BufferArgument, IntArgument, Kernel, Manifest, Tensor
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tools.report.memory_map import bytes_text, memory_map, users_of

_STYLE = """
rect.plain { fill: var(--plain) } rect.halo { fill: var(--special) }
.bar { display: inline-block; height: .7em; background: var(--bar) }
"""


def page(
    plan: Plan, binding: ShapeBinding, times: Sequence[float] | None = None, sources: Mapping[str, str] | None = None
) -> str:
    """The page for the shapes of `binding`; `times` has the milliseconds of each launch, `sources` kernels' text."""
    manifest = plan.manifest
    timed = ["#ms"] if times else []
    names = [kernel.name for kernel in manifest.kernels]
    blocks = [
        f"<p>{escape(_machine(manifest))}</p>",
        html_table(["what", "#size"], _sizes(plan, binding, times)),
        "<h2>Inputs and outputs</h2>",
        html_table(["", "name", "type", "shape", "in this page"], _tensors(manifest, binding)),
        "<h2>Memory</h2>",
        _memory(manifest, binding),
        "<h2>Launches</h2>",
        html_table(
            ["#", "layer", "kernel", "arguments", *timed, *([""] if times else [])],
            _launches(manifest, binding, times),
        ),
        *_decisions(manifest),
        "<h2>Kernels</h2>",
        html_table(["kernel", "#launches", *timed, "#code", "arguments"], _kernels(plan, times, sources or {}), names),
        *_source_blocks(sources or {}),
    ]
    return html_page(manifest.name, blocks, _STYLE)


def _machine(manifest: Manifest) -> str:
    target = manifest.target
    details = [f"{target.vector_bits}-bit vectors", *target.features] if target.kind == "cpu" else [target.arch]
    return f"Built by mlirt {manifest.mlirt} for {target.kind}: {', '.join(details)}. {target.triple}"


def _sizes(plan: Plan, binding: ShapeBinding, times: Sequence[float] | None) -> Iterator[Sequence[str]]:
    yield "weights", bytes_text(sum(array.nbytes for array in plan.weights.values()))
    yield "object code", bytes_text(sum(len(memoryview(body)) for body in plan.sections.values()))
    yield "memory for these shapes, without inputs and outputs", bytes_text(binding.arena_bytes)
    yield "the same if no buffer shared memory", bytes_text(sum(binding.sizes[i] for i in binding.offsets))
    yield "launches", str(len(plan.manifest.launches))
    yield "kernels", str(len(plan.manifest.kernels))
    if times:
        yield "median times of all launches, each run alone", f"{sum(times):.3f} ms"


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
        f"memory only with buffers of the same geometry. Each says more when pointed at.</p>\n{drawing}\n"
        f"<details><summary>the same as a table</summary>{_buffers(manifest, binding)}</details>"
    )


def _buffers(manifest: Manifest, binding: ShapeBinding) -> str:
    rows = (
        (
            str(index),
            f"{binding.sizes[index]:,}",
            f"{offset:,}",
            f"{manifest.buffers[index].first} to {manifest.buffers[index].last}",
            escape(users_of(manifest, index)),
        )
        for index, offset in sorted(binding.offsets.items())
        if binding.sizes[index]
    )
    return html_table(["#buffer", "#bytes", "#at", "launches", "layers"], rows)


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
        row = [str(bound.index), escape(launch.layer), _link(kernel.name, kernel.name), details]
        if times:
            width = 140 * times[bound.index] / longest if longest else 0
            row += [
                f"{times[bound.index]:.4f}",
                f'<span class="bar" style="width:{width:.0f}px" aria-hidden="true"></span>',
            ]
        yield row


def _argument(argument: Argument, value: BoundArgument) -> str:
    if isinstance(argument, BufferArgument):
        assert isinstance(value, Address)
        return f"buffer {argument.buffer} + {to_text(argument.offset)}"
    if isinstance(argument, IntArgument) and not isinstance(argument.value, int):
        return f"{to_text(argument.value)} = {value}"
    return str(value)


def _link(name: str, target: str) -> str:
    return f'<a href="#{escape(target)}"><code>{escape(name)}</code></a>'


def _decisions(manifest: Manifest) -> Iterator[str]:
    found = decisions(manifest, on_device=True)
    if found:
        yield "<h2>Branches and loops</h2>"
        rows = ((one.kind, escape(", ".join(one.layers)), one.decided_by) for one in found)
        yield html_table(["", "layers inside", "decided by"], rows)


def _kernels(plan: Plan, times: Sequence[float] | None, sources: Mapping[str, str]) -> Iterator[Sequence[str]]:
    """The kernel of each row is known by its name in the page, its source by that and a word."""
    launches = plan.manifest.launches
    uses = Counter(launch.kernel for launch in launches)
    spent = [0.0] * len(plan.manifest.kernels)
    for launch, time in zip(launches, times or [0.0] * len(launches), strict=True):
        spent[launch.kernel] += time
    for index, kernel in enumerate(plan.manifest.kernels):
        code = ", ".join(_code(plan, kernel))
        name = f"<code>{escape(kernel.name)}</code>"
        if kernel.name in sources:
            name = _link(kernel.name, f"source-{kernel.name}")
        timed = [f"{spent[index]:.4f}"] if times else []
        yield name, str(uses[index]), *timed, code, escape(_counted(kernel.args))


def _counted(kinds: Sequence[str]) -> str:
    """The kinds of arguments in their order, equal neighbours together: `ptr, 17 i64, 2 ptr`."""
    runs = [(kind, len(list(run))) for kind, run in groupby(kinds)]
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in runs)


def _code(plan: Plan, kernel: Kernel) -> Iterator[str]:
    for arch, section in kernel.objects.items():
        size = bytes_text(len(memoryview(plan.sections[section])))
        yield f"{escape(arch)}: {size}" if arch else size


def _source_blocks(sources: Mapping[str, str]) -> Iterator[str]:
    if sources:
        yield "<h2>Source of the kernels</h2>"
    for kernel, text in sources.items():
        head = f'<details id="source-{escape(kernel)}"><summary>{escape(kernel)}</summary>'
        yield f"{head}<pre>{escape(text)}</pre></details>"
