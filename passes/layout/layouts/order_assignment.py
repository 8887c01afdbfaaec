"""Assigns memory orders (NCHW or NHWC) to all ops of a function together, by a minimum cut, and rewrites them.

The choice is a minimum cut: ops on the source's side work with their channels last, the others on plain tensors. An
edge from the source to an op costs what the op takes on plain tensors, one to the sink what it takes with channels
last, and a tensor that is wanted in another order than it is made in costs a copy, once for all of its readers. An op
that may read in one order and write in another is two nodes, with an edge for what the change costs.
"""

from __future__ import annotations

from math import inf

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.locations import fuse
from mlirt.dialects.tensor_types import (
    byte_width,
    channels_last,
    dims,
    element_of,
    memory_order,
    rank,
    with_order,
)
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import typical_values
from mlirt.passes.layout.layouts.io_borders import direct_values, drop_idle_copies
from mlirt.passes.layout.layouts.joined_parts import lie_in_place
from mlirt.passes.layout.layouts.minimum_cut import MinimumCut
from mlirt.passes.layout.layouts.order_costs import FORBIDDEN, MAX_ACCESS_BYTES, Costs
from mlirt.passes.layout.layouts.order_preferences import Choice, Order, Preference, choice_of, has_orders, ordered
from mlirt.passes.layout.layouts.slices import join_slices, show_slices

# Ops that read and write rows wherever these lie.
_BY_ROWS = (ConvolutionOp, MatmulOp, PointwiseOp, ReductionOp, WindowOp)
_SOURCE, _SINK = "channels last", "plain"


class OrderAssignment:
    """The choice for one function."""

    def __init__(
        self, block: Block, *, has_warpgroups: bool = True, has_tf32: bool = False, has_tensor_memory: bool = False
    ) -> None:
        self.block = block
        self.costs = Costs(typical_values(block), has_warpgroups, has_tf32, has_tensor_memory)
        self.choices: dict[Operation, Choice] = {
            op: choice_of(op, self.costs) for op in block.ops if not isinstance(op, ConstantOp)
        }
        self._conversions: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        self._copies: dict[ConcatOp, set[int]] = {}
        self._direct = direct_values(block)

    def run(self) -> None:
        """Give results their orders and copy operands where that was found to be worth it."""
        chosen = self._cut()
        for op in self.choices:
            if op in chosen:
                for result in filter(lambda one: has_orders(one.type), op.results):
                    last = ordered(result.type, Order.LAST)
                    padded = isinstance(op, _BY_ROWS) and self._feeds_convolutions(result)
                    Rewriter.replace_value_with_new_type(result, _in_whole_vectors(last) if padded else last)
        for op, choice in self.choices.items():
            for preference in choice.preferences:
                own = Order.LAST if _node(op, preference) in chosen else Order.PLAIN
                if preference.price is None:
                    self._grant(op, preference, preference.order or own)
        for op, copies in self._copies.items():  # which are written straight into the result
            op.in_place = [flag or k in copies for k, flag in enumerate(op.in_place)]
        drop_idle_copies(self.block, _BY_ROWS)
        join_slices(self.block)
        lie_in_place(self.block)
        show_slices(self.block)

    def _feeds_convolutions(self, value: SSAValue) -> bool:
        """Whether convolutions read a value by vectors, and whoever else reads it goes by the strides."""
        users = [use.operation for use in value.uses]
        wide = [
            op
            for op in users
            if isinstance(op, ConvolutionOp) and op.input is value and not self.costs.reads_any_order(op)
        ]
        return bool(wide) and all(isinstance(op, _BY_ROWS) and op.parent is self.block for op in users)

    def _cut(self) -> set[object]:
        """The ops whose results have their channels last, and the nodes of those that read such images."""
        graph = MinimumCut(_SOURCE, _SINK)
        readers: dict[SSAValue, list[tuple[object, float | None]]] = {}
        for op, choice in self.choices.items():
            graph.edge(_SOURCE, op, choice.plain)
            graph.edge(op, _SINK, inf if self._is_read_inside(op) else choice.last)
            if choice.reordering is not None:
                _add_reads(graph, op, choice.reads, choice.reordering)
            for preference in choice.preferences:
                value = op.operands[preference.operand]
                if not isinstance(value.owner, ConstantOp):
                    side = {None: _node(op, preference), Order.PLAIN: _SINK, Order.LAST: _SOURCE}[preference.order]
                    readers.setdefault(value, []).append((side, preference.price))
        for value, sides in readers.items():
            maker = value.owner if isinstance(value.owner, Operation) else _SINK
            self._add_readers(graph, value, maker, sides)
        return set(graph.source_side())

    def _is_read_inside(self, op: Operation) -> bool:
        """Whether a branch or a loop reads a result: its types have to stay what they are."""
        return any(use.operation.parent is not self.block for result in op.results for use in result.uses)

    def _add_readers(
        self, graph: MinimumCut, value: SSAValue, maker: object, sides: list[tuple[object, float | None]]
    ) -> None:
        copy = FORBIDDEN if value in self._direct else self.costs.reformat(value.type)
        to_last, to_plain = (value, Order.LAST), (value, Order.PLAIN)
        for side, price in sides:
            if price is not None:
                graph.edge(maker, side, price)
                graph.edge(side, maker, price)
            else:
                graph.edge(side, to_last, inf)
                graph.edge(to_plain, side, inf)
        graph.edge(to_last, maker, copy)
        graph.edge(maker, to_plain, copy)

    def _grant(self, op: Operation, preference: Preference, order: Order) -> None:
        value = op.operands[preference.operand]
        wanted = ordered(value.type, order)
        if isinstance(value.owner, ConstantOp) or not has_orders(value.type) or _lies_like(value.type, wanted):
            return
        if isinstance(op, ConvolutionOp) and order is Order.LAST:
            wanted = _in_whole_vectors(wanted)
        op.operands[preference.operand] = self._converted(value, wanted, op)
        if isinstance(op, ConcatOp):
            self._copies.setdefault(op, set()).add(preference.operand)

    def _converted(self, value: SSAValue, wanted: Attribute, before: Operation) -> SSAValue:
        """The value in another order, copied once in front of its first reader."""
        key = (value, wanted)
        if key not in self._conversions:
            op = ReformatOp(value, wanted)
            op.location = fuse(value.owner) if isinstance(value.owner, Operation) else before.location
            op.output.name_hint = value.name_hint
            self.block.insert_op_before(op, before)
            self._conversions[key] = op.output
        return self._conversions[key]


def _node(op: Operation, preference: Preference) -> object:
    """The node that tells in which order an op wants an operand."""
    return (op, "reads") if preference.reorders else op


def _add_reads(graph: MinimumCut, op: Operation, costs: tuple[float, float], reordering: tuple[float, float]) -> None:
    reads = (op, "reads")
    graph.edge(_SOURCE, reads, costs[0])
    graph.edge(reads, _SINK, costs[1])
    graph.edge(op, reads, reordering[0])
    graph.edge(reads, op, reordering[1])


def _lies_like(of: Attribute, wanted: Attribute) -> bool:
    return memory_order(of) == memory_order(wanted)


def _in_whole_vectors(of: Attribute) -> Attribute:
    """The type with rows of channels that start at multiples of the widest access, so that no row needs single ones."""
    count, lanes = dims(of)[1], MAX_ACCESS_BYTES // byte_width(element_of(of))
    if not isinstance(count, int) or count % lanes == 0:
        return of
    return with_order(of, channels_last(rank(of)), -(-count // lanes) * lanes)


__all__ = ["OrderAssignment"]
