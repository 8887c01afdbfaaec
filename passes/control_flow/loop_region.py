"""Builds the region of one loop out of the layers at its border and those inside."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirt.dialects.locations import name_of
from mlirt.dialects.regions import condition_of, index_constant, index_of, tensor_of
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_types import compatible, dims, element_of, is_unknown, rank
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.elementwise import ElementwiseKind as Kind
from mlirt.dialects.trt.loop import IteratorOp, LoopOutputKind, LoopOutputOp, TripLimitKind
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import InvalidModelError
from mlirt.passes.control_flow.boundaries import LoopParts
from mlirt.passes.control_flow.scopes import path_of, set_path, sort_block
from mlirt.passes.layer_builder import COUNTER, LayerBuilder


class LoopRegion:
    """One loop of a block; `convert` puts an `scf` op in the place of its layers."""

    def __init__(self, ctx: Context, block: Block, parts: LoopParts) -> None:
        self.ctx, self.block, self.parts = ctx, block, parts
        borders = set(parts.all())
        self.inside = [op for op in block.ops if parts.name in path_of(op) and op not in borders]
        self.outer = self._outer_path()
        anchor = parts.outputs[0] if parts.outputs else parts.limits[0]
        self.before = LayerBuilder.in_front_of(anchor, ctx)
        self.places: dict[SSAValue, int] = {recurrence.output: k for k, recurrence in enumerate(parts.recurrences)}
        self.following = {self.places[one.recurrence]: one for one in parts.nexts}
        self.last_values = {one: self.places[one.input] for one in parts.outputs if one.input in self.places}
        self.collected = [output for output in parts.outputs if output.kind.data is not LoopOutputKind.LAST_VALUE]

    def _outer_path(self) -> tuple[str, ...]:
        for op in (*self.parts.recurrences, *self.parts.iterators, *self.inside):
            path = path_of(op)
            return path[: path.index(self.parts.name)]
        return path_of(self.parts.limits[0])

    def convert(self) -> None:
        """Replace the loop; a loop without outputs is erased."""
        known = set(self.block.ops)
        if self.parts.outputs:
            self._convert()
        self._erase()
        for op in self.block.ops:
            if op not in known:
                set_path(op, self.outer)

    def _erase(self) -> None:
        leftover = self.inside if not self.parts.outputs else []
        ops = [*self.parts.outputs, *self.parts.nexts, *self.parts.limits, *leftover]
        for op in (*reversed(ops), *self.parts.iterators, *self.parts.recurrences):
            op.detach()
            op.drop_all_references()
        for op in (*ops, *self.parts.iterators, *self.parts.recurrences):
            op.erase(safe_erase=False)

    def _convert(self) -> None:
        counts = self.parts.limit(TripLimitKind.COUNT)
        condition = self.parts.limit(TripLimitKind.WHILE)
        count = None if counts is None else self.before.whole(counts.limit)
        lengths = [self._length(output, count) for output in self.collected]
        starts = [recurrence.initial for recurrence in self.parts.recurrences]
        totals = [
            self.before.zeros(element_of(output.input.type), [length, *dims(output.input.type)])
            for output, length in zip(self.collected, lengths, strict=True)
        ]
        carried = [*starts, *totals]
        if condition is None:
            assert count is not None
            results = self._counted(count, carried)
        else:
            results = self._conditional(condition.limit, count, carried)
        self._replace_outputs(results)

    # What is collected.

    def _length(self, output: LoopOutputOp, count: SSAValue | None) -> Dim:
        """How long a collected tensor is; a loop with more iterations ends the run with an error."""
        assert output.length is not None
        length = dims(output.output.type)[output.axis.value.data]
        if is_unknown(length):
            length = sym(f"{self.parts.name}_{self.collected.index(output)}_length")
            room = self.before.binary(Kind.MAX, self.before.whole(output.length), self.before.number(0))
            self.before.insert(DefineSizeOp(str(length), room))
        if count is not None and output.length is not self._count_operand():
            self._check_length(output, count)
        return length

    def _count_operand(self) -> SSAValue | None:
        limit = self.parts.limit(TripLimitKind.COUNT)
        return None if limit is None else limit.limit

    def _check_length(self, output: LoopOutputOp, iterations: SSAValue) -> None:
        assert output.length is not None
        known, room = _number(iterations), _number(output.length)
        message = f"layer {name_of(output)}: the loop has more iterations than its output is long"
        if known is not None and room is not None:
            if known > room:
                raise InvalidModelError(f"{message}: {known} iterations, length {room}")
            return
        fits = self.before.binary(Kind.LESS_EQUAL, iterations, self.before.whole(output.length))
        self.before.insert(RequireOp(fits, message))

    def _replace_outputs(self, results: list[SSAValue]) -> None:
        for output in self.parts.outputs:
            if output.kind.data is LoopOutputKind.LAST_VALUE:
                value = results[self.last_values[output]]
            else:
                value = results[len(self.parts.recurrences) + self.collected.index(output)]
                order = list(range(1, rank(value.type)))
                order.insert(output.axis.value.data, 0)
                value = self.before.transposed(value, order)
            value.name_hint = value.name_hint or output.output.name_hint
            output.output.replace_all_uses_with(value)

    # The body.

    def _body(self, carried: list[SSAValue]) -> tuple[Block, SSAValue]:
        """The block of the body: the counter, then what is carried; ends with nothing yet."""
        body = Block(arg_types=[COUNTER, *(value.type for value in carried)])
        counter = body.args[0]
        made = LayerBuilder(self.ctx, body, self.before.named)
        for iterator in self.parts.iterators:
            made.named = iterator
            iterator.output.replace_all_uses_with(self._element_at(iterator, counter, made))
        for recurrence, argument in zip(self.parts.recurrences, body.args[1:], strict=False):
            argument.name_hint = recurrence.output.name_hint
            recurrence.output.replace_all_uses_with(argument)
        for op in self.inside:
            op.detach()
            body.add_op(op)
        return body, counter

    def _element_at(self, iterator: IteratorOp, counter: SSAValue, made: LayerBuilder) -> SSAValue:
        axis = iterator.axis.value.data
        length = made.length(iterator.input, axis)
        message = f"layer {name_of(iterator)}: the loop goes on past the end of its iterator"
        iterations, room = self._known_trip_count(), dims(iterator.input.type)[axis]
        if iterations is not None and isinstance(room, int):
            if iterations > room:
                raise InvalidModelError(f"{message}: {iterations} iterations, length {room}")
        else:
            made.insert(RequireOp(made.binary(Kind.LESS, counter, length), message))
        place = counter
        if iterator.reverse.value.data:
            place = made.binary(Kind.SUB, made.binary(Kind.SUB, length, made.number(1)), counter)
        return made.slice_at(iterator.input, place, axis)

    def _known_trip_count(self) -> int | None:
        """The most iterations that the loop can have, where its count is a constant."""
        limit = self.parts.limit(TripLimitKind.COUNT)
        return None if limit is None else _number(limit.limit)

    def _next_values(self, body: Block, counter: SSAValue) -> list[SSAValue]:
        """What the body carries on: second inputs of the recurrences, and the collected tensors with another row."""
        count = len(self.parts.recurrences)
        values = [self._as_carried(body, self.following[k].value, body.args[1 + k]) for k in range(count)]
        for output, total in zip(self.collected, body.args[1 + count :], strict=False):
            made = LayerBuilder(self.ctx, body, output)
            place = counter
            if output.kind.data is LoopOutputKind.REVERSE:
                last = made.binary(Kind.SUB, made.length(total, 0), made.number(1))
                place = made.binary(Kind.SUB, last, counter)
                place = self._kept_outside(made, place)
            values.append(made.with_slice(total, place, output.input))
        return values

    def _as_carried(self, body: Block, value: SSAValue, carried: SSAValue) -> SSAValue:
        """A length that broadcasts with others in the body has to stay the one that is carried."""
        if value.type == carried.type or not compatible(value.type, carried.type):
            return value
        return LayerBuilder(self.ctx, body, self.before.named).value(BroadcastOp.of(value, dims(carried.type)))

    def _kept_outside(self, made: LayerBuilder, place: SSAValue) -> SSAValue:
        """A place before the start is no place from the end."""
        below = made.binary(Kind.LESS, place, made.number(0))
        return made.layer(SelectOp, [below, made.number(2**62), place])

    def _counted(self, count: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        body, counter = self._body(carried)
        values = self._next_values(body, counter)
        lower, step = (self.before.insert(index_constant(number)) for number in (0, 1))
        known = _number(count)
        if known is not None:
            upper = self.before.value(index_constant(max(known, 0)))
        else:
            ops, upper = index_of(count)
            for op in ops:
                self.before.insert(op)
        index = body.insert_arg(IndexType(), 0)
        bridge, as_tensor = tensor_of(index)
        counter.replace_all_uses_with(as_tensor)
        body.erase_arg(body.args[1])
        for op in reversed(bridge):
            op.location = self.before.named.location
            first = body.first_op
            if first is None:
                body.add_op(op)
            else:
                body.insert_op_before(op, first)
        self._end(body, values)
        loop = scf.ForOp(lower.results[0], upper, step.results[0], carried, Region(body))
        self.before.insert(loop)
        return list(loop.results)

    def _conditional(self, condition: SSAValue, count: SSAValue | None, carried: list[SSAValue]) -> list[SSAValue]:
        body, counter = self._body(carried)
        limit = next(one for one in self.parts.limits if one.kind.data is TripLimitKind.WHILE)
        test = Block(arg_types=[COUNTER, *(value.type for value in carried)])
        moved = self._behind(limit.limit, body)
        for op in moved:
            op.detach()
            test.add_op(op)
        for old, new in zip(body.args, test.args, strict=True):
            for use in list(old.uses):
                if _is_in(use.operation, test) or use.operation is limit:
                    use.operation.operands[use.index] = new
        values = self._next_values(body, counter)
        made = LayerBuilder(self.ctx, test, limit)
        holds = limit.limit
        if count is not None:
            holds = made.binary(Kind.AND, holds, made.binary(Kind.LESS, test.args[0], count))
        ops, truth = condition_of(holds)
        for op in ops:
            made.insert(op)
        passed = list(dict.fromkeys(result for op in moved for result in op.results if _is_read_in(result, body)))
        for result in passed:
            argument = body.insert_arg(result.type, len(body.args))
            for use in list(result.uses):
                if _is_in(use.operation, body) or use.operation in self.parts.nexts:
                    use.operation.operands[use.index] = argument
            values = [argument if value is result else value for value in values]
        values = self._with_counter(body, values)
        self._end(body, values)
        made.insert(scf.ConditionOp(truth, *test.args, *passed))
        sort_block(test)
        inputs = [self.before.number(0), *carried]
        types = [*(value.type for value in inputs), *(value.type for value in passed)]
        loop = scf.WhileOp(inputs, types, Region(test), Region(body))
        self.before.insert(loop)
        for output in self.collected:
            self._check_length(output, loop.results[0])
        return list(loop.results[1 : 1 + len(carried)])

    def _with_counter(self, body: Block, values: list[SSAValue]) -> list[SSAValue]:
        made = LayerBuilder(self.ctx, body, self.before.named)
        return [made.binary(Kind.SUM, body.args[0], made.number(1)), *values]

    def _behind(self, condition: SSAValue, body: Block) -> list[Operation]:
        """The ops of the body that compute the condition, in order."""
        needed: set[Operation] = set()
        todo = [condition]
        while todo:
            owner = todo.pop().owner
            if isinstance(owner, Operation) and owner.parent is body and owner not in needed:
                needed.add(owner)
                todo += [value for inner in owner.walk() for value in inner.operands]
        return [op for op in body.ops if op in needed]

    def _end(self, body: Block, values: list[SSAValue]) -> None:
        end = scf.YieldOp(*values)
        end.location = self.before.named.location
        body.add_op(end)
        sort_block(body)


def _number(value: SSAValue) -> int | None:
    """A 0-D integer that is a constant."""
    owner = value.owner
    return int(owner.array(WeightStore()).reshape(-1)[0]) if isinstance(owner, ConstantOp) else None


def _is_in(op: Operation, block: Block) -> bool:
    """Whether an op stands in a block, or in a region there."""
    top: Operation | None = op
    while top is not None and top.parent is not block:
        top = top.parent_op()
    return top is not None


def _is_read_in(value: SSAValue, block: Block) -> bool:
    return any(_is_in(use.operation, block) or use.operation.name == "trt.recurrence_next" for use in value.uses)
