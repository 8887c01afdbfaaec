"""`mlirt.draw`: the launches of an engine as a graph, read from the top down, for notebooks and files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError
from mlirt.tools.report.graph import Graph, Node
from mlirt.tools.report.launch_graph import launch_graph
from mlirt.tools.report.layered_layout import NODE_HEIGHT, NODE_WIDTH, RANK_HEIGHT, layout
from mlirt.tools.report.usual_shapes import usual_binding

if TYPE_CHECKING:
    from mlirt.runtime.engine_interface import EngineLike

_MARGIN = 12
_LETTERS = 26
_COLOURS = ("#2b7a78", "#b07c1d", "#5b7fb5", "#8a5a83", "#5f8f4f", "#a35645")
_END_COLOUR = "#777"


class Drawing:
    """A picture in SVG, which a notebook shows; `save` writes it, `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture at once or not at all."""
        write_file(path, [self.svg.encode()], "the picture")


def draw(engine: EngineLike, shapes: Mapping[str, Sequence[int]] | None = None) -> Drawing:
    """The inputs, launches and outputs of an engine, and which gives another what it computed.

    A box has the name of a layer of the network, how many more are fused into the launch, and the kernel's family; the
    pointer over it shows all names. shapes: of inputs, by name; without them those of the profile, else usual ones.
    Raises `InvalidInputError` for an engine without a plan, as that of the reference target.

        mlirt.draw(engine)                    # the last line of a notebook's cell
        mlirt.draw(engine).save("model.svg")
    """
    from mlirt.runtime.engine import Engine

    inner = getattr(engine, "engine", engine)  # that of a PyTorch module
    if not isinstance(inner, Engine):
        raise InvalidInputError("there is no plan to draw: build for 'cpu' or 'cuda'")
    manifest = inner.plan.manifest
    binding = usual_binding(manifest, shapes or {})
    tensors = {one.name: str(one) for one in (*inner.inputs, *inner.outputs)}
    facts = [()] * len(manifest.launches)
    return Drawing(_svg(launch_graph(manifest, binding, facts, tensors, inner.name)))


def _svg(graph: Graph) -> str:
    placed = layout(len(graph.nodes), graph.edges)
    middles = [x + NODE_WIDTH // 2 + _MARGIN for x in placed.x]
    tops = [rank * RANK_HEIGHT + _MARGIN for rank in placed.rank]
    width = max(middles, default=0) + NODE_WIDTH // 2 + _MARGIN
    height = max(tops, default=0) + NODE_HEIGHT + _MARGIN
    colours = _colours(graph.nodes)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escape(graph.title)}</title>'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    lines: list[str] = []
    for (source, target), bends in zip(graph.edges, placed.bends, strict=True):
        points = [(middles[source], tops[source] + NODE_HEIGHT)]
        points += [
            (
                bend + NODE_WIDTH // 2 + _MARGIN,
                (placed.rank[source] + 1 + at) * RANK_HEIGHT + _MARGIN + NODE_HEIGHT // 2,
            )
            for at, bend in enumerate(bends)
        ]
        points.append((middles[target], tops[target]))
        path = " ".join(f"{x},{y}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="#999"/>')
    boxes = [_box(node, x, y, colours[node.kind]) for node, x, y in zip(graph.nodes, middles, tops, strict=True)]
    return "\n".join([head, *lines, *boxes, "</svg>\n"])


def _colours(nodes: Sequence[Node]) -> Mapping[str, str]:
    kinds = dict.fromkeys(node.kind for node in nodes if node.launch is not None)
    chosen = {kind: _COLOURS[number % len(_COLOURS)] for number, kind in enumerate(kinds)}
    return {node.kind: chosen.get(node.kind, _END_COLOUR) for node in nodes}


def _box(node: Node, middle: int, top: int, colour: str) -> str:
    names = " + ".join(node.layers) or next(iter(_texts(node)), node.label)
    label = node.label if len(node.label) <= _LETTERS else f"{node.label[: _LETTERS - 2]}.."
    return (
        f'<g><title>{escape(names)}</title><rect x="{middle - NODE_WIDTH // 2}" y="{top}" width="{NODE_WIDTH}" '
        f'height="{NODE_HEIGHT}" rx="5" fill="{colour}"/><text x="{middle}" y="{top + 17}" fill="white" '
        f'text-anchor="middle">{escape(label)}</text><text x="{middle}" y="{top + 33}" fill="white" font-size="10" '
        f'text-anchor="middle">{escape(node.kind)}</text></g>'
    )


def _texts(node: Node) -> Iterator[str]:
    return (text for _, text in node.facts if text)
