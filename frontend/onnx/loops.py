"""A graph that runs again and again, as a loop in the network: values that it carries, and values that it collects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirt.dialects.regions import condition_of, index_constant, index_of, tensor_of
from mlirt.dialects.symbolic import Dim, Expr, maximum, sym, symbols
from mlirt.dialects.tensor_types import Tensor, tensor
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.errors import UnsupportedError
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.dim_numbers import not_negative
from mlirt.frontend.importing.dimension_names import identifier
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.branches import scalar_of
from mlirt.frontend.onnx.node import Node

_COUNTER = tensor(i64, [])
_MAX_READINGS = 8


@dataclass
class Iteration:
    """What the body of a loop gives: whether to go on (None: always), what it carries on, a row of what it collects."""

    more: Value | None
    carried: list[Value]
    collected: list[Value]


@dataclass
class LoopBody:
    """The ops of the body while it is made: `block` takes the counter, then the carried values."""

    block: Block
    iteration: Iteration
    own_names: frozenset[str]


Body = Callable[[Value, "list[Value]"], Iteration]


class ChangingShapeError(UnsupportedError):
    """What a loop carries has another shape after each iteration."""


@dataclass
class LoopMaker:
    """Makes one loop. `limit` is the most iterations as a 0-D int64 value, `start` whether there is a first one."""

    net: Network
    node: Node
    limit: Value | None
    start: Value | None
    carried: Sequence[Value]
    body: Body
    types: list[Tensor] = field(default_factory=list[Tensor])

    def make(self) -> tuple[list[Value], list[Value]]:
        """The carried values after the last iteration, and the collected tensors with the iterations as their first
        dimension.
        """
        net = self.net
        self.types = [value.type for value in self.carried]
        starts = [net.ssa(value) for value in self.carried]
        made = self._read_body()
        is_counted = _always(made.iteration.more) and _always(self.start)
        if is_counted and self.limit is None:
            raise self.node.invalid("it has neither a trip count nor a condition that ends it")
        length, is_early = self._length(is_counted)
        rows = [net.ssa(value) for value in made.iteration.collected]
        totals = [self._empty(value, length, made) for value in made.iteration.collected]
        self._collect(made, totals, rows)
        build = self._counted if is_counted else self._conditional
        with_lengths = [*starts, *(net.ssa(total) for total in totals)]
        results, iterations = build(made, with_lengths, length if is_early else None)
        if totals and not is_early:
            self.net.append_at(DefineSizeOp(str(length), net.ssa(iterations)))
        kept = results[: len(starts)]
        return kept, results[len(starts) :]

    # The body.

    def _read_body(self) -> LoopBody:
        """Read the body; a carried value whose lengths change from iteration to iteration gets names for them, and
        again.
        """
        for _ in range(_MAX_READINGS):
            made = self._read_once()
            pairs = enumerate(zip(self.types, made.iteration.carried, strict=True))
            try:
                wider = [self._widened(k, before, after, made) for k, (before, after) in pairs]
            except ChangingShapeError:
                made.block.drop_all_references()  # what has been read of it must not count as a use
                raise
            if wider == self.types:
                return made
            self.types = wider
        raise self.node.unsupported("the shapes of what it carries do not converge")

    def _read_once(self) -> LoopBody:
        net, count = self.net, len(self.net.fresh_names)
        block = Block(arg_types=[_COUNTER, *self.types])
        arguments = [Value(type_, ssa) for type_, ssa in zip(self.types, block.args[1:], strict=True)]
        with net.inside(block):
            iteration = self.body(self._counter(block), arguments)
            for value in (
                *iteration.carried,
                *iteration.collected,
                *([] if iteration.more is None else [iteration.more]),
            ):
                net.ssa(value)
        return LoopBody(block, iteration, frozenset(net.fresh_names[count:]))

    def _counter(self, block: Block) -> Value:
        """The number of the iteration; shape arithmetic may count with it, but no shape may depend on it."""
        name = self.net.moving_name(f"{identifier(self.node.name)}_iteration")
        numbers = np.empty((), object)
        numbers[()] = sym(name)
        return Value(_COUNTER, block.args[0], numbers=numbers)

    def _widened(self, k: int, before: Tensor, after: Value, made: LoopBody) -> Tensor:
        from mlirt.dialects.tensor_types import dims, element_name, element_of, rank

        if element_of(before) != after.element:
            raise self.node.invalid(
                f"state {k} is {element_name(element_of(before))} before an iteration and {after.element_name} after it"
            )
        if rank(before) != after.rank:
            raise self.node.unsupported(
                f"state {k} has {rank(before)} dimensions before an iteration and {after.rank} after it; "
                "a tensor's number of dimensions must not depend on the data"
            )
        if any(old != new for old, new in zip(dims(before), after.dims, strict=True)):
            raise ChangingShapeError(
                f"state {k} is {[str(dim) for dim in dims(before)]} before an iteration and "
                f"{[str(dim) for dim in after.dims]} after it"
            )
        return before

    # What is collected.

    def _length(self, is_counted: bool) -> tuple[Dim, bool]:
        """How many rows there are, and whether that is known before the loop."""
        known = None if self.limit is None else self.limit.dim_values
        count = None if known is None else known.reshape(-1)[0]
        if is_counted and isinstance(count, int | Expr):
            if isinstance(count, int):
                return max(count, 0), True
            return (count if not_negative(count) else maximum(count, 0)), True
        return sym(self.net.fresh_name(f"{identifier(self.node.name)}_iterations")), is_counted

    def _empty(self, row: Value, length: Dim, made: LoopBody) -> Value:
        """What the rows of a collected tensor are written to."""
        changing = [name for dim in row.dims for name in symbols(dim) if name in made.own_names]
        if changing:
            raise self.node.unsupported(
                f"an output has rows of the shape {[str(dim) for dim in row.dims]}, which iterations may change"
            )
        zero = layers.scalar_like(self.net, 0, row, row.rank + 1)
        return layers.expand(self.net, zero, [length, *row.dims])

    def _collect(self, made: LoopBody, totals: Sequence[Value], rows: Sequence[SSAValue]) -> None:
        """Let the body carry the collected tensors too, and write one row of each."""
        net, block = self.net, made.block
        with net.inside(block):
            for total, row in zip(totals, made.iteration.collected, strict=True):
                argument = Value(total.type, block.insert_arg(total.type, len(block.args)))
                at = layers.reshape(net, Value(_COUNTER, block.args[0]), [1, 1])
                update = layers.reshape(net, row, [1, *row.dims])
                made.iteration.carried.append(net.emit("scatter", [argument, at, update], mode="nd"))
        assert len(rows) == len(totals)

    # The loop itself.

    def _counted(self, made: LoopBody, starts: Sequence[SSAValue], length: Dim | None) -> tuple[list[Value], Value]:
        """`scf.for`; returns its results and the trip count."""
        net, block = self.net, made.block
        assert self.limit is not None
        limit = scalar_of(net, layers.cast(net, self.limit, "int64"))
        iterations = limit
        if isinstance(length, Expr) and len(symbols(length)) == 1 and str(length) in net.fresh_names:
            iterations = layers.binary(net, "max", limit, net.constant(np.array(0, np.int64)))
            self.net.append_at(DefineSizeOp(str(length), net.ssa(iterations)))
        ops, upper = self._bound(iterations)
        for op in ops:
            self.net.append_at(op)
        lower, step = index_constant(0), index_constant(1)
        for op in (lower, step):
            self.net.append_at(op)
        index = block.insert_arg(IndexType(), 0)
        bridge, counter = tensor_of(index)
        block.args[1].replace_all_uses_with(counter)
        block.erase_arg(block.args[1])
        first = block.first_op
        for op in bridge:
            op.location = net.location
            if first is None:
                block.add_op(op)
            else:
                block.insert_op_before(op, first)
        self._end(block, [net.ssa(value) for value in made.iteration.carried])
        loop = scf.ForOp(lower.result, upper, step.result, list(starts), Region(block))
        self.net.append_at(loop)
        return [Value(self._type(ssa), ssa) for ssa in loop.results], iterations

    def _bound(self, iterations: Value) -> tuple[list[Operation], SSAValue]:
        array = iterations.array
        if array is None:
            return index_of(self.net.ssa(iterations))
        op = index_constant(int(array.reshape(-1)[0]))
        return [op], op.result

    def _conditional(self, made: LoopBody, starts: Sequence[SSAValue], length: Dim | None) -> tuple[list[Value], Value]:
        """`scf.while`; the condition is carried, so that it is known when an iteration begins."""
        net, block = self.net, made.block
        zero, one = (net.constant(np.array(number, np.int64)) for number in (0, 1))
        limit = None if self.limit is None else scalar_of(net, layers.cast(net, self.limit, "int64"))
        begin = net.constant(np.array(True)) if self.start is None else scalar_of(net, self.start)
        if limit is not None:
            begin = layers.binary(net, "and", begin, layers.binary(net, "less", zero, limit))
        last = None if limit is None else layers.binary(net, "sub", limit, one)
        with net.inside(block):
            counter = Value(_COUNTER, block.args[0])
            more = net.constant(np.array(True)) if made.iteration.more is None else scalar_of(net, made.iteration.more)
            if last is not None:
                more = layers.binary(net, "and", more, layers.binary(net, "less", counter, last))
            following = layers.binary(net, "sum", counter, one)
            carried = [net.ssa(value) for value in (following, more, *made.iteration.carried)]
            self._end(block, carried)
        inputs = [net.ssa(zero), net.ssa(begin), *starts]
        before = Block(arg_types=[value.type for value in inputs])
        ops, holds = condition_of(before.args[1])
        rest = [before.args[0], *before.args[2:]]
        for op in (*ops, scf.ConditionOp(holds, *rest)):
            op.location = net.location
            before.add_op(op)
        loop = scf.WhileOp(inputs, [value.type for value in rest], Region(before), Region(block))
        self.net.append_at(loop)
        results = [Value(self._type(ssa), ssa) for ssa in loop.results]
        return results[1:], results[0]

    def _end(self, block: Block, values: Sequence[SSAValue]) -> None:
        end = scf.YieldOp(*values)
        end.location = self.net.location
        block.add_op(end)

    def _type(self, ssa: SSAValue) -> Tensor:
        from mlirt.dialects.tensor_types import dims, element_of

        return tensor(element_of(ssa.type), dims(ssa.type))


def _always(condition: Value | None) -> bool:
    if condition is None:
        return True
    array = condition.array
    return array is not None and bool(array.reshape(-1)[0])
