"""Puts the nodes of a graph in an order in which each comes after those that it reads from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from onnx import AttributeProto, GraphProto, NodeProto

from mlirt.errors import InvalidModelError


def node_label(node: NodeProto, index: int) -> str:
    """What messages and locations call a node."""
    return node.name or f"{node.op_type}_{index}"


def ordered_nodes(
    nodes: Sequence[NodeProto], defined: Collection[str], wanted: Collection[str]
) -> list[tuple[int, NodeProto]]:
    """The nodes that the `wanted` tensors need, in order, each with its place in the graph.

    `defined` are the tensors known before the first node. Raises `InvalidModelError` for a tensor that nothing or two
    nodes define, and for a cycle.
    """
    makers = _makers(nodes, defined)
    reads = [sorted(set(tensors_read(node))) for node in nodes]
    for index, node in enumerate(nodes):
        for name in reads[index]:
            if name not in makers and name not in defined:
                raise _problem(node, index, f"reads the tensor {name!r}, which nothing in the model defines")
    done: set[int] = set()
    order: list[int] = []
    for name in wanted:
        if name in makers:
            _visit(makers[name], nodes, reads, makers, done, order)
    return (
        [(index, nodes[index]) for index in sorted(order)]
        if _in_order(order, reads, makers)
        else [(k, nodes[k]) for k in order]
    )


def _problem(node: NodeProto, index: int, what: str) -> InvalidModelError:
    return InvalidModelError(f"{node.op_type} (node {node_label(node, index)!r}) {what}")


def tensors_read(node: NodeProto) -> Iterator[str]:
    """The tensors that a node reads, those that its subgraphs take from around them included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs
        for graph in graphs:
            yield from _captured(graph)


def _captured(graph: GraphProto) -> Iterator[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in tensors_read(node) if name not in own)
    yield from (value.name for value in graph.output if value.name not in own)


def _makers(nodes: Sequence[NodeProto], defined: Collection[str]) -> dict[str, int]:
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and (name in makers or name in defined):
                raise _problem(node, index, f"defines the tensor {name!r}, which is already defined")
            if name:
                makers[name] = index
    return makers


def _visit(
    start: int,
    nodes: Sequence[NodeProto],
    reads: list[list[str]],
    makers: dict[str, int],
    done: set[int],
    order: list[int],
) -> None:
    """Depth first from one node, without recursion: graphs can be many thousand nodes deep."""
    open_nodes: set[int] = set()
    stack = [start]
    while stack:
        index = stack[-1]
        if index in done:
            stack.pop()
            continue
        missing = [makers[name] for name in reads[index] if name in makers and makers[name] not in done]
        if not missing:
            done.add(index)
            open_nodes.discard(index)
            order.append(index)
            stack.pop()
            continue
        open_nodes.add(index)
        if open_nodes.intersection(missing):
            raise _problem(nodes[index], index, "needs its own result: the graph has a cycle")
        stack.extend(missing)


def _in_order(order: list[int], reads: list[list[str]], makers: dict[str, int]) -> bool:
    """Whether the order in the file is already a good one, which keeps the text close to the model."""
    return all(makers[name] < index for index in order for name in reads[index] if name in makers)
