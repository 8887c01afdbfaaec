"""Equality saturation over scales, shifts and transpositions: no order of rewrites, but all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from e_graph import EGraph, Head, Leaf, Node, Pointwise, Transpose
from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, is_tensor
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.remarks import applied, declined

PIPELINE = "after=simplify-shuffles:saturate-shuffles"
_POINTWISE = (ActivationOp, UnaryOp, ElementwiseOp)


@dataclass(frozen=True)
class SaturateShufflesPass(ModulePass):
    """Write pointwise layers and the transpositions around them in the cheapest of all equal forms.

    Before:

        %t = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
        %s = trt.activation sigmoid %t : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
        %p = trt.elementwise prod %t, %s : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
        %y = trt.shuffle %p {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>

    After:

        %s = trt.activation sigmoid %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
        %y = trt.elementwise prod %x, %s : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    """

    name = "saturate-shuffles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            ops = [inner for inner in block.ops if _head(inner) is not None]
            if any(isinstance(inner, ShuffleOp) for inner in ops):
                _Saturation(ops).run(block)


@dataclass(frozen=True)
class _Details:
    """What makes a layer of a pointwise function again."""

    kind: type[TensorOp]
    properties: tuple[tuple[str, Attribute], ...]


def _head(op: Operation) -> Transpose | Pointwise | None:
    """What a layer is in the e-graph; None for those that are outside."""
    types = [value.type for value in (*op.operands, *op.results)]
    lengths = [length for one in types if is_tensor(one) for length in dims(one)]
    if not isinstance(op, (*_POINTWISE, ShuffleOp)) or not all(isinstance(length, int) for length in lengths):
        return None
    if isinstance(op, ShuffleOp):
        is_transposition = op.first_transpose is not None and len(op.properties) == 2 and op.shape is None
        return Transpose(integers(op.first_transpose)) if is_transposition and op.first_transpose else None
    name = str(op.kind.data) if isinstance(op, ElementwiseOp) else type(op).__name__
    return Pointwise(name, _Details(type(op), tuple(sorted(op.properties.items(), key=lambda pair: pair[0]))))


class _Saturation:
    """The layers of a block, their classes, and the terms that take their place."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.ops = ops
        self.graph = EGraph()
        self.leaves: list[SSAValue] = []
        self.classes: dict[SSAValue, int] = {}
        self.made: dict[int, SSAValue] = {}
        for op in ops:
            head = _head(op)
            assert head is not None
            number = self.graph.add(head, *(self._class_of(value) for value in op.operands))
            self.classes[op.results[0]] = number
        self.was: dict[int, Node] = {number: node for node, number in self.graph.nodes.items()}

    def _class_of(self, value: SSAValue) -> int:
        if value not in self.classes:
            shape = tuple(length for length in dims(value.type) if isinstance(length, int))
            self.classes[value] = self.graph.leaf(len(self.leaves), shape, isinstance(value.owner, ConstantOp))
            self.leaves.append(value)
        return self.classes[value]

    def run(self, block: Block) -> None:
        inside = set(self.ops)
        roots = [op for op in self.ops if any(use.operation not in inside for use in op.results[0].uses)]
        numbers = [self.classes[op.results[0]] for op in roots]
        before = self.graph.total(numbers, self.was)
        self.graph.saturate()
        best = self.graph.cheapest()
        after = self.graph.total(numbers, best)
        if after >= before:
            declined(roots[-1], f"none of {len(self.graph.nodes)} equal nodes makes it cheaper")
            return
        for root, number in zip(roots, numbers, strict=True):
            value = self._built(number, best, block, root)
            if value.name_hint is None:
                value.name_hint = root.results[0].name_hint
            root.results[0].replace_all_uses_with(value)
        if isinstance(last := self.made[self.graph.find(numbers[-1])].owner, Operation):
            applied(last, f"cost {before:.0f} -> {after:.0f}, the best of {len(self.graph.nodes)} nodes")
        for op in reversed(self.ops):
            if op.results[0].first_use is None:
                op.detach()
                op.erase()

    def _built(self, number: int, best: dict[int, Node], block: Block, root: Operation) -> SSAValue:
        """The value of a class, whose layers are put in front of `root` unless they are there already."""
        number = self.graph.find(number)
        if number not in self.made:
            head, arguments = best[number]
            if isinstance(head, Leaf):
                self.made[number] = self.leaves[head.number]
            else:
                operands = [self._built(one, best, block, root) for one in arguments]
                made = _layer(head, operands, self._location(number, root))
                block.insert_op_before(made, root)
                self.made[number] = made.results[0]
        return self.made[number]

    def _location(self, number: int, root: Operation) -> LocationAttr:
        """That of the layer that computed the class before."""
        same = (op for op in self.ops if self.graph.find(self.classes[op.results[0]]) == number)
        return next(same, root).location


def _layer(head: Head, operands: Sequence[SSAValue], location: LocationAttr) -> TensorOp:
    if isinstance(head, Transpose):
        return ShuffleOp.build_inferred(operands, {"first_transpose": integer_list(head.permutation)}, location)
    assert isinstance(head, Pointwise)
    assert isinstance(head.details, _Details)
    return head.details.kind.build_inferred(operands, dict(head.details.properties), location)
