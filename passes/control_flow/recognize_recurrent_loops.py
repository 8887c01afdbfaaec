"""Recurrent cells that a loop spells out become one layer over whole sequences."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import BlockArgument, Operation, SSAValue

from mlirt.dialects.regions import tensor_of
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.passes.control_flow.cell_formulas import Formula, NotACellError, SliceOfIteration, State, rows_and_columns
from mlirt.passes.control_flow.cell_patterns import Cell, cell_of
from mlirt.passes.control_flow.cell_reader import CellReader
from mlirt.passes.control_flow.cell_writer import CellWriter, Sequences
from mlirt.passes.control_flow.iteration_formulas import ITERATION, IterationFormulas
from mlirt.passes.control_flow.region_rewriting import is_outside, is_pure
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.rules import Outcome, RulePass, op, rule


@dataclass(frozen=True)
class RecognizeRecurrentLoopsPass(RulePass):
    """Replace the simple, LSTM or GRU cell of a counted loop by `trt.rnn` over the sequence that the loop goes along.

    It does not matter how the cell is written: its gates may be parts of one product or have products of their own, in
    any order; the input's product may stand in front of the loop. What else the loop does with the hidden state reads
    the slice of the layer's output for the iteration. Sums are rounded in another order.

    Before:

        %h = scf.for %i = %zero to %steps step %one iter_args(%a = %start) -> (tensor<1x4xf32>) {
          %e = trt.gather %x, %j : (tensor<100x1x8xf32>, tensor<i64>) -> tensor<1x8xf32>
          %p = trt.matrix_multiply %e, %w : (tensor<1x8xf32>, tensor<8x4xf32>) -> tensor<1x4xf32>
          %q = trt.matrix_multiply %a, %r : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
          %s = trt.elementwise sum %p, %q : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
          %b = trt.activation tanh %s : (tensor<1x4xf32>) -> tensor<1x4xf32>
          scf.yield %b : tensor<1x4xf32>
        }

    After, with the weights transposed:

        %y, %h = trt.rnn simple %x, %u weights %v : tensor<4x8xf32> hidden %start : tensor<1x4xf32> ..
          : tensor<100x1x8xf32>, tensor<4x4xf32> -> tensor<100x1x4xf32>, tensor<1x4xf32>
    """

    name = "recognize-recurrent-loops"

    @rule(op(scf.ForOp).named("loop"))
    def recognize(self, ctx: Context, loop: scf.ForOp) -> Outcome:
        """Take one cell out of a loop; a layer may be the input of the next one in the same loop."""
        reasons: list[str] = []
        for place in range(len(loop.iter_args)):
            try:
                found = _Recognition(loop, ctx, place)
            except NotACellError as error:
                reasons.append(str(error))
                continue
            found.replace()
            return loop
        return next(iter(reasons), None)


class _Recognition:
    """A cell whose hidden state the loop carries at a place; raises `NotACellError` where there is none."""

    def __init__(self, loop: scf.ForOp, ctx: Context, place: int) -> None:
        self.loop, self.ctx = loop, ctx
        reader = CellReader(loop, ctx)
        self.numbers = reader.numbers
        self.following = list(_end(loop).operands)
        self.cell = self._cell(reader, place)
        self.checks = _checks(loop, self.numbers)
        self.sequences = self._sequences()
        self.places = [place, *([] if self.cell.memory is None else [self.cell.memory.place])]
        if any(value in self._needed_elsewhere() for value in self._memories()):
            raise NotACellError("its cell state is read in each iteration")

    def _cell(self, reader: CellReader, place: int) -> Cell:
        value = self.following[place]
        _, size = rows_and_columns(value)
        if not isinstance(element_of(value.type), Float32Type | Float16Type | BFloat16Type):
            raise NotACellError("its states are no numbers of a cell")
        if isinstance(value, BlockArgument) or not isinstance(value.owner, Operation):
            raise NotACellError("its state stays")
        if value.owner.parent is not self.loop.body.block:
            raise NotACellError("its state comes from outside")
        hidden = State(place, 0, size)
        others: dict[State, Formula] = {}
        for other, after in enumerate(self.following):
            if other != place and after.type == value.type and after is not value:
                try:
                    others[State(other, 0, size)] = reader.whole(after)
                except NotACellError:
                    continue
        return cell_of(hidden, reader.whole(value), others)

    def _sequences(self) -> Sequences:
        steps = self.numbers.count
        batch, _ = rows_and_columns(self.following[self.cell.hidden.place])
        slices = self.cell.slices()
        directions = {one.backwards for one in slices}
        if steps is None or len(directions) != 1 or not all(self._stays_inside(one, steps) for one in slices):
            raise NotACellError("its iterations are not the steps of its sequences")
        for one in slices:
            rows = [size for axis, size in enumerate(dims(one.sequence.type)) if axis != one.axis][:-1]
            if [size for size in rows if size != 1] != [size for size in [batch] if size != 1]:
                raise NotACellError("its input has other sequences")
        return Sequences(steps, batch, directions.pop())

    def _stays_inside(self, slice_: SliceOfIteration, steps: Dim) -> bool:
        """Whether every iteration reads a slice that exists, or the run has checked that."""
        length = dims(slice_.sequence.type)[slice_.axis]
        first = slice_.start - steps + 1 if slice_.backwards else slice_.start
        checked = any(check.limit == length for check in self.checks)
        gaps = (first, length - first - steps)
        return all((isinstance(gap, int) and gap >= 0) or (checked and gap == length - steps) for gap in gaps)

    def _memories(self) -> list[SSAValue]:
        if self.cell.memory is None:
            return []
        place = self.cell.memory.place
        return [self.following[place], self.loop.body.block.args[1 + place]]

    def _needed_elsewhere(self) -> set[SSAValue]:
        """What the loop computes for others than the states of the cell, with the hidden state being given."""
        given = self.following[self.cell.hidden.place]
        needed: set[SSAValue] = set()
        todo = [value for place, value in enumerate(self.following) if place not in self.places]
        todo += [
            v for op in self.loop.body.block.ops if not _is_quiet(op) for inner in op.walk() for v in inner.operands
        ]
        while todo:
            value = todo.pop()
            if value in needed or value is given:
                continue
            needed.add(value)
            if isinstance(value.owner, Operation) and value.owner.parent is self.loop.body.block:
                todo += [read for inner in value.owner.walk() for read in inner.operands]
        return needed

    def replace(self) -> None:
        loop, cell, hidden = self.loop, self.cell, self.following[self.cell.hidden.place]
        assert isinstance(hidden.owner, Operation)
        block, body = loop.parent, loop.body.block
        assert block is not None
        before = LayerBuilder.in_front_of(loop, self.ctx, hidden.owner)
        for check in self.checks:
            check.move(before, self.numbers)
        outputs, *last = CellWriter(
            cell, before, self.sequences, [loop.iter_args[place] for place in self.places]
        ).write()
        outputs.name_hint = hidden.name_hint
        for place, value in zip(self.places, last, strict=True):
            loop.results[place].replace_all_uses_with(before.shaped(value, dims(loop.results[place].type)))
        made = LayerBuilder.in_front_of(hidden.owner, self.ctx)
        at = self._counter(made)
        if self.sequences.backwards:
            end = made.binary(ElementwiseKind.SUB, made.length(outputs, 0), made.number(1))
            at = made.binary(ElementwiseKind.SUB, end, at)
        shown = made.shaped(made.slice_at(outputs, at, 0), dims(hidden.type))
        hidden.replace_all_uses_with(shown)
        for place in self.places[1:]:
            _end(loop).operands[place] = body.args[1 + place]
        _erase_unread(loop)

    def _counter(self, made: LayerBuilder) -> SSAValue:
        ops, counter = tensor_of(self.loop.body.block.args[0])
        for one in ops:
            made.insert(one)
        return counter


@dataclass(frozen=True)
class _Check:
    """A check in each iteration that its number is below a limit, which is one that the count does not exceed it."""

    op: RequireOp
    limit: Dim
    length: SSAValue

    def move(self, before: LayerBuilder, numbers: IterationFormulas) -> None:
        """One check in front of the loop, where sizes do not say that it holds."""
        room = None if numbers.count is None else self.limit - numbers.count
        self.op.detach()
        if not isinstance(room, int) or room < 0:
            fits = before.binary(ElementwiseKind.LESS_EQUAL, numbers.iterations(before), self.length)
            before.insert(RequireOp(fits, self.op.message.data))
        self.op.drop_all_references()
        self.op.erase(safe_erase=False)


def _checks(loop: scf.ForOp, numbers: IterationFormulas) -> list[_Check]:
    found: list[_Check] = []
    for check in loop.body.block.ops:
        less = check.condition.owner if isinstance(check, RequireOp) else None
        if not isinstance(less, ElementwiseOp) or less.kind.data is not ElementwiseKind.LESS:
            continue
        limit = numbers.number(less.rhs)
        if numbers.number(less.lhs) == ITERATION and limit is not None and is_outside(less.rhs, loop):
            assert isinstance(check, RequireOp)
            found.append(_Check(check, limit, less.rhs))
    return found


def _is_quiet(op: Operation) -> bool:
    return is_pure(op) or isinstance(op, scf.YieldOp)


def _end(loop: scf.ForOp) -> Operation:
    end = loop.body.block.last_op
    assert end is not None
    return end


def _erase_unread(loop: scf.ForOp) -> None:
    for one in reversed(list(loop.body.block.ops)):
        if is_pure(one) and not isinstance(one, scf.YieldOp) and all(r.first_use is None for r in one.results):
            one.detach()
            one.drop_all_references()
            one.erase(safe_erase=False)
