"""The graph of a network in the IR: an op a node, constants left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import ConstantLike, IsTerminator

from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.locations import names
from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.tools.report.graph import Fact, Graph, Node, short

_MAX_VALUE_LENGTH = 90


def network_graph(module: ModuleOp, title: str) -> Graph:
    """The entry function: its arguments, its ops, those in regions behind the op that has them, and its results."""
    return _Reader(entry_function(module)).graph(title)


class _Reader:
    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self._nodes: list[Node] = []
        self._makers: dict[SSAValue, int] = {}
        self._edges: dict[tuple[int, int], None] = {}

    def graph(self, title: str) -> Graph:
        block = self._function.body.block
        for name, argument in zip(input_names(self._function), block.args, strict=True):
            self._makers[argument] = len(self._nodes)
            self._nodes.append(Node(name, "input", (), (("input", type_text(argument.type)),)))
        for op in block.ops:
            if not op.has_trait(IsTerminator):
                self._take(op)
        last = block.last_op
        for name, value in zip(output_names(self._function), last.operands if last else (), strict=False):
            self._nodes.append(Node(name, "output", (), (("output", type_text(value.type)),)))
            self._read(len(self._nodes) - 1, value)
        return Graph(title, self._nodes, list(self._edges))

    def _take(self, op: Operation) -> None:
        if isinstance(op, ConstantOp) or op.has_trait(ConstantLike):
            return
        number = len(self._nodes)
        layers = tuple(names(op.location))
        self._nodes.append(Node(short(layers, op.name), op.name.partition(".")[2], layers, tuple(_facts(op))))
        self._makers |= dict.fromkeys(op.results, number)
        for value in op.operands:
            self._read(number, value)
        if op.name.startswith(("trt.", "scf.")):
            for region in op.regions:
                for block in region.blocks:
                    self._makers |= dict.fromkeys(block.args, number)
                    for inner in block.ops:
                        if not inner.has_trait(IsTerminator):
                            self._take(inner)

    def _read(self, node: int, value: SSAValue) -> None:
        maker = self._makers.get(value)
        if maker is not None and maker != node:
            self._edges[maker, node] = None


def type_text(of: Attribute) -> str:
    """A type as people write it: `float32 [n, 64, 56, 56]`."""
    if of.name != TensorType.name:
        return str(of)
    return f"{element_name(element_of(of))} [{', '.join(map(str, dims(of)))}]"


def _facts(op: Operation) -> Iterator[Fact]:
    yield "op", op.name
    for name, value in (*op.properties.items(), *op.attributes.items()):
        text = str(value)
        if not name.startswith("operandSegment") and len(text) <= _MAX_VALUE_LENGTH:
            yield name, text
    yield from _types("input", [one.type for one in op.operands])
    yield from _types("output", [one.type for one in op.results])


def _types(word: str, types: Sequence[Attribute]) -> Iterator[Fact]:
    for of in types:
        yield word, type_text(of)
