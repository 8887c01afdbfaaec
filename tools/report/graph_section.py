"""The part of the page with the picture of the network: its controls, and the data that graph.js draws."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from mlirt.runtime.manifest import Tensor
from mlirt.tools.report.graph import Fact, Graph
from mlirt.tools.report.launch_graph import launch_graph
from mlirt.tools.report.launch_work import TensorFacts
from mlirt.tools.report.layered_layout import NODE_HEIGHT, NODE_WIDTH, RANK_HEIGHT, layout
from mlirt.tools.report.memory_map import bytes_text
from mlirt.tools.report.quantization_section import quantization_notes
from mlirt.tools.report.subject import Subject

if TYPE_CHECKING:
    from mlirt.tools.report.tactic_choices import TacticChoice

_MAX_REMARKS = 5
_MAX_TACTICS = 8


def graph_block(subject: Subject, other: Subject | None) -> str:
    """The section, and the data of all graphs: before, fused, after, and the launches of another engine."""
    graphs = list(subject.build.graphs) if subject.build else []
    graphs = [_with_remarks(graph, subject) for graph in graphs]
    first = len(graphs)
    graphs.append(_launches(subject, "After: launches of the plan"))
    if other is not None:
        graphs.append(_launches(other, f"Other: launches of {other.label}"))
    model = subject.build.nodes if subject.build else ()
    times = [[one.median for one in subject.times or ()], [one.median for one in other.times or ()] if other else []]
    texts = _Texts()
    views = [_view(graph, times[number > first], texts) for number, graph in enumerate(graphs)]
    box = {"width": NODE_WIDTH, "height": NODE_HEIGHT, "rank": RANK_HEIGHT}
    text = in_script({"box": box, "first": first, "views": views, "model": model, "texts": list(texts.places)})
    return f'{_controls(graphs, first)}\n<script type="application/json" id="report-data">{text}</script>'


def in_script(value: object) -> str:
    """JSON that no text in it can leave: `<` and its like are written as escapes."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _controls(graphs: Sequence[Graph], first: int) -> str:
    options = "".join(
        f'<option value="{number}"{" selected" if number == first else ""}>{escape(graph.title)} '
        f"({len(graph.nodes):,})</option>"
        for number, graph in enumerate(graphs)
    )
    return f"""<section id="network"><h2>Network</h2>
<div class="tools"><label class="grow">find a layer, or an operator
<input type="search" id="search" autocomplete="off" placeholder="name"></label>
<label>graph<select id="view">{options}</select></label>
<label>colours<select id="colour"><option value="kind">kinds</option><option value="time">time</option></select></label>
<button id="zoom-in" aria-label="zoom in">+</button><button id="zoom-out" aria-label="zoom out">&#8722;</button>
<button id="whole">whole graph</button></div>
<p id="count" class="hint" role="status"></p><ul id="results" aria-label="layers found"></ul>
<div class="stage"><canvas id="graph" tabindex="0" role="application" aria-describedby="keys"
aria-label="graph of the network; the tables below have the same"></canvas>
<aside id="details" tabindex="0" aria-label="details of the chosen node">
<p class="hint">Choose a node to see its layers, shapes, types, layouts, kernel and times.</p></aside></div>
<ul id="legend" aria-label="kinds of nodes"></ul><p id="said" class="hint" role="status"></p>
<p id="keys" class="hint">Drag to move; the wheel zooms once the graph has been clicked, as do + and &#8722;;
0 shows all. Arrows go to what a node gives its result to, to what it reads, and to its neighbours;
Enter goes to the details.</p>
<noscript><p>Scripts are off: the tables below have what the picture would show.</p></noscript></section>"""


class _Texts:
    """Texts that are written once: types and names come again in many nodes."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.places.setdefault(text, len(self.places))


def _view(graph: Graph, times: Sequence[float], texts: _Texts) -> Mapping[str, object]:
    placed = layout(len(graph.nodes), graph.edges)
    nodes: list[Mapping[str, object]] = []
    for node, x, rank in zip(graph.nodes, placed.x, placed.rank, strict=True):
        facts = [texts(text) for fact in node.facts for text in fact]
        record: dict[str, object] = {"l": texts(node.label), "k": texts(node.kind), "x": x, "r": rank, "f": facts}
        record["n"] = [texts(name) for name in node.layers]
        if node.launch is not None:
            record["u"] = node.launch
            if times:
                record["t"] = round(times[node.launch], 6)
        nodes.append(record)
    edges = [(*edge, bends) for edge, bends in zip(graph.edges, placed.bends, strict=True)]
    return {"title": graph.title, "nodes": nodes, "edges": edges}


def _launches(subject: Subject, title: str) -> Graph:
    manifest = subject.plan.manifest
    ends = (
        *zip(manifest.given_inputs, subject.binding.input_shapes, strict=True),
        *zip(manifest.outputs, subject.binding.output_shapes, strict=True),
    )
    tensors = {tensor.name: _end(tensor, shape) for tensor, shape in ends}
    facts = [list(launch_facts(subject, number)) for number in range(len(manifest.launches))]
    return launch_graph(manifest, subject.binding, facts, tensors, title)


def _end(tensor: Tensor, shape: Sequence[int]) -> str:
    return f"{tensor.dtype} {list(shape)}"


def launch_facts(subject: Subject, number: int) -> Iterator[Fact]:
    """What the details of a launch say."""
    manifest = subject.plan.manifest
    work = subject.works[number]
    if subject.times is not None:
        time, whole = subject.times[number], sum(one.median for one in subject.times)
        yield "time", f"{time.median:.4f} ms, quartiles {time.lower:.4f} to {time.upper:.4f}"
        yield "share of all launches", f"{time.median / whole:.1%}" if whole else ""
    yield "kernel", manifest.kernels[manifest.launches[number].kernel].name
    for word, tensors in (("reads", work.inputs), ("weights", work.weights), ("writes", work.outputs)):
        for tensor in tensors:
            yield word, _tensor(tensor)
    if work.operations is not None:
        yield "moves at least", bytes_text(work.bytes)
        yield "operations", f"{work.operations:,}"
    for note in quantization_notes(subject, number):
        yield "quantisation", note
    yield from _tactics(subject, subject.layers[number])


def _tensor(tensor: TensorFacts) -> str:
    return f"{tensor.name}: {tensor}" if tensor.name else str(tensor)


def _tactics(subject: Subject, layers: tuple[str, ...]) -> Iterator[Fact]:
    for choice in subject.build.tactics_by_layers.get(layers, ()) if subject.build and layers else ():
        if len(choice.estimates) > 1:
            ways = [_way(choice, name, cost) for name, cost in choice.estimates[:_MAX_TACTICS]]
            yield f"tactics considered ({choice.op})", ", ".join(ways)


def _way(choice: TacticChoice, name: str, estimate: float | None) -> str:
    return " ".join(filter(None, (name, choice.text(name, estimate), "(chosen)" if name == choice.chosen else "")))


def _with_remarks(graph: Graph, subject: Subject) -> Graph:
    """The nodes with what passes said of their layers."""
    said: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for remark in subject.build.remarks if subject.build else ():
        for layer in remark.layer.split(" + "):
            said[layer][f"{remark.pass_name}: {remark.kind}{f': {remark.reason}' if remark.reason else ''}"] = None
    nodes = [
        node.with_facts(("remark", text) for layer in node.layers for text in list(said.get(layer, ()))[:_MAX_REMARKS])
        for node in graph.nodes
    ]
    return Graph(graph.title, nodes, graph.edges)
