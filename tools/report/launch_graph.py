"""The graph of a plan: its launches, and through which memory one gives another what it has computed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlirt.runtime.expressions import ExpressionError, evaluate
from mlirt.runtime.manifest import BufferArgument, Launch, Manifest, MapArgument
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tools.report.graph import Fact, Graph, Node, short


def launch_graph(
    manifest: Manifest,
    binding: ShapeBinding,
    facts: Sequence[Sequence[Fact]],
    tensors: Mapping[str, str],
    title: str,
) -> Graph:
    """Inputs, launches, outputs; `facts` has those of each launch, `tensors` the text of inputs and outputs by name."""
    inputs, outputs = manifest.given_inputs, manifest.outputs
    flow = _Flow(manifest, _spans(manifest, binding))
    nodes = [_end(tensor.name, "input", tensors) for tensor in inputs]
    for number, tensor in enumerate(inputs):
        flow.write(number, tensor.buffer, ())
    for number, launch in enumerate(manifest.launches):
        names = layers_of(launch)
        kernel = manifest.kernels[launch.kernel]
        kind = str(manifest.layers[number].get("family", "")) if number < len(manifest.layers) else kernel.name
        nodes.append(Node(short(names, kernel.name), kind, names, tuple(facts[number]), number))
        flow.launch(len(nodes) - 1, launch)
    for tensor in outputs:
        nodes.append(_end(tensor.name, "output", tensors))
        flow.read(len(nodes) - 1, tensor.buffer, ())
    return Graph(title, nodes, list(dict.fromkeys(flow.edges)))


def layers_of(launch: Launch) -> tuple[str, ...]:
    """The layers of the trained network that a launch computes."""
    return tuple(launch.layer.split(" + ")) if launch.layer else ()


def _end(name: str, kind: str, tensors: Mapping[str, str]) -> Node:
    return Node(name, kind, (), ((kind, tensors.get(name, "")),))


def _spans(manifest: Manifest, binding: ShapeBinding) -> list[tuple[int, int]]:
    """For each buffer the bytes, of the buffer that owns them, which it shows."""
    starts: list[int] = []
    for buffer in manifest.buffers:
        start = 0
        if buffer.view_of is not None and buffer.view_of < len(starts):
            try:
                start = starts[buffer.view_of] + evaluate(buffer.view_offset, binding.values)
            except ExpressionError:
                pass
        starts.append(start)
    return [(start, start + max(size, 1)) for start, size in zip(starts, binding.sizes, strict=True)]


@dataclass
class _Flow:
    """Who has written what so far, and the edges that follow from it."""

    manifest: Manifest
    spans: Sequence[tuple[int, int]]
    writers: dict[int, list[tuple[int, int, tuple[int, ...]]]] = field(
        default_factory=dict[int, list[tuple[int, int, tuple[int, ...]]]]
    )
    edges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def launch(self, node: int, launch: Launch) -> None:
        memory = list(_memory(launch))
        written = self._written(launch, memory)
        for place, buffer, part in memory:
            if place not in written:
                self.read(node, buffer, part)
        for place, buffer, part in memory:
            if place in written:
                self.write(node, buffer, part)

    def _written(self, launch: Launch, memory: Sequence[tuple[int, int, tuple[int, ...]]]) -> Collection[int]:
        """The arguments that are written; where the plan does not say it, those in whose memory nothing is yet."""
        written = self.manifest.kernels[launch.kernel].written
        if len(memory) < 2 or any(place not in written for place, _, _ in memory):
            return written
        return [place for place, buffer, _ in memory if not self._holds_something(buffer)]

    def _holds_something(self, buffer: int) -> bool:
        root = self.manifest.roots[buffer]
        return bool(self.writers.get(root)) or self.manifest.buffers[root].kind in ("input", "weight")

    def read(self, node: int, buffer: int, part: tuple[int, ...]) -> None:
        low, high = self.spans[buffer]
        for writer, other, written in self.writers.get(self.manifest.roots[buffer], ()):
            first, last = self.spans[other]
            if writer != node and low < last and first < high and _meet(part, written):
                self.edges.append((writer, node))

    def write(self, node: int, buffer: int, part: tuple[int, ...]) -> None:
        """What was in the buffer is no more; other parts and views of its memory stay."""
        writers = self.writers.setdefault(self.manifest.roots[buffer], [])
        writers[:] = [one for one in writers if one[1] != buffer or one[2][: len(part)] != part]
        writers.append((node, buffer, part))


def _memory(launch: Launch) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    for place, argument in enumerate(launch.args):
        if isinstance(argument, BufferArgument):
            yield place, argument.buffer, argument.part
        elif isinstance(argument, MapArgument):
            yield place, argument.buffer, ()


def _meet(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
