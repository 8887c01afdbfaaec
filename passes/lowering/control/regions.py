"""Lowers branches and loops: their values get memory, their regions become regions of the host program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.plan.control import Control
from mlirt.dialects.plan.control import IfOp as PlanIfOp
from mlirt.dialects.plan.control import RequireLengthsOp as PlanRequireLengthsOp
from mlirt.dialects.plan.control import RequireOp as PlanRequireOp
from mlirt.dialects.plan.control import SizeOp as PlanSizeOp
from mlirt.dialects.plan.control import WhileOp as PlanWhileOp
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.regions import Terminator, is_bridge, source_of_condition
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.copying import copy, dense
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.passes.lowering.control.in_place import may_replace


class ControlLowering:
    """The lowering of the ops of a block, and of the blocks in them.

    A branch writes its results to memory that both sides share; a loop keeps each value that it carries in one place,
    and the last iteration's value is the result.
    """

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.places = lowering.placements

    def ops(self, ops: Iterable[Operation]) -> None:
        """Lower ops in order; the terminator of their block is left to the caller."""
        for op in ops:
            self.places.anchor = op
            if isinstance(op, FusedOp):
                self.lowering.lower(op)
            elif isinstance(op, scf.IfOp):
                self._branch(op)
            elif isinstance(op, scf.WhileOp):
                self._loop(op)
            elif isinstance(op, DefineSizeOp | RequireOp | RequireLengthsOp):
                self._check(op)
            elif not (isinstance(op, ConstantOp | ReturnOp | Terminator) or is_bridge(op)):
                raise OperationError(op, "stands between fused ops, where no kernel can be made of it")

    def _branch(self, op: scf.IfOp) -> None:
        condition = self._condition(op, op.cond)
        targets = [self.places.fresh(result) for result in op.output]
        for region in op.regions:
            if region.blocks:
                self._branch_block(region.block, targets)
        then, otherwise = (_host_part(region) for region in op.regions)
        _insert(PlanIfOp(condition.buffer, condition.offset, then, otherwise), op)

    def _branch_block(self, block: Block, targets: Sequence[Placement]) -> None:
        _check_sizes_first(block)
        yielded = _terminator(block)
        direct: set[SSAValue] = set()
        for value, target in zip(yielded.operands, targets, strict=True):
            if value not in direct and _is_computed_in(value, block) and not self.places.is_in_place(value):
                self.places.put(value, target)
                direct.add(value)
        self.ops(list(block.ops))
        for value, target in zip(yielded.operands, targets, strict=True):
            if self.places[value].buffer is not target.buffer:
                self._copy(value, target, yielded)

    def _loop(self, op: scf.WhileOp) -> None:
        before, body = op.before_region.block, op.after_region.block
        carried = [self.places.fresh(argument) for argument in before.args]
        for value, target in zip(op.arguments, carried, strict=True):
            self._copy(value, target, op)
        self.ops(list(before.ops))
        passed = _terminator(before)
        assert isinstance(passed, scf.ConditionOp)
        condition = self._condition(passed, passed.condition)
        for value, argument, result in zip(passed.args, body.args, op.res, strict=True):
            self.places.put(argument, self.places[value])
            self.places.put(result, self.places[value])
        self._body(body, carried, self._aliases(before, passed, body))
        made = PlanWhileOp(
            condition.buffer, condition.offset, _host_part(op.before_region), _host_part(op.after_region)
        )
        _insert(made, op)

    def _aliases(self, before: Block, passed: scf.ConditionOp, body: Block) -> list[list[SSAValue]]:
        """For each value that the loop carries, the names that the body has for what lies there."""
        return [
            [
                argument,
                *(
                    inner
                    for value, inner in zip(passed.args, body.args, strict=True)
                    if self.places[value].buffer is self.places[argument].buffer
                ),
            ]
            for argument in before.args
        ]

    def _body(self, body: Block, carried: Sequence[Placement], aliases: Sequence[Sequence[SSAValue]]) -> None:
        yielded = _terminator(body)
        direct: set[SSAValue] = set()
        for value, target, old in zip(yielded.operands, carried, aliases, strict=True):
            free = value not in direct and _is_computed_in(value, body) and not self.places.is_in_place(value)
            if free and may_replace(value, old, body):
                self.places.put(value, target)
                direct.add(value)
        self.ops(list(body.ops))
        moves = [
            (value, target)
            for value, target in zip(yielded.operands, carried, strict=True)
            if self.places[value].buffer is not target.buffer
        ]
        targets = {target.buffer for _, target in moves}
        staged = [(self._staged(value, yielded, targets), target) for value, target in moves]
        for (value, source), target in staged:
            self._copy(value, target, yielded, source)

    def _staged(self, value: SSAValue, before: Operation, targets: set[SSAValue]) -> tuple[SSAValue, Placement | None]:
        """A value that lies where another one is about to be written is moved out of the way first."""
        if self.places[value].buffer not in targets:
            return value, None
        self.places.anchor = before
        buffer = self.places.scratch(self.places.size_of(self.places[value].buffer))
        target = dense(buffer, dims(value.type))
        self._copy(value, target, before)
        return value, target

    def _copy(self, value: SSAValue, target: Placement, at: Operation, source: Placement | None = None) -> None:
        before = self.places[value]
        if source is not None:
            self.places.put(value, source)
        self.places.anchor = at
        target = Placement(target.buffer, target.offset, dense(target.buffer, dims(value.type)).strides)
        copy(value, target, at, self.lowering)
        if source is not None:
            self.places.put(value, before)

    def _condition(self, op: Operation, value: SSAValue) -> Placement:
        try:
            return self.places[source_of_condition(value)]
        except ValueError as error:
            raise OperationError(op, f"cannot be compiled: {error}") from error

    def _check(self, op: DefineSizeOp | RequireOp | RequireLengthsOp) -> None:
        if isinstance(op, RequireOp):
            place = self.places[op.condition]
            _insert(PlanRequireOp(place.buffer, place.offset, op.message.data), op)
        elif isinstance(op, RequireLengthsOp):
            _insert(PlanRequireLengthsOp(op.requirement()), op)
        elif op.count is None:
            _insert(PlanSizeOp(op.symbol.data, None, 0, op.dimension()), op)
        else:
            place = self.places[op.count]
            _insert(PlanSizeOp(op.symbol.data, place.buffer, place.offset), op)


def _terminator(block: Block) -> Operation:
    last = block.last_op
    assert last is not None
    return last


def _check_sizes_first(block: Block) -> None:
    """Let a run with a wrong guess stop before it writes into memory of that size: formulas need nothing computed."""
    for op in reversed([op for op in block.ops if isinstance(op, DefineSizeOp) and op.count is None]):
        first = block.first_op
        if first is not None and first is not op:
            op.detach()
            block.insert_op_before(op, first)


def _is_computed_in(value: SSAValue, block: Block) -> bool:
    """Whether an op of the block writes the value."""
    owner = value.owner
    return isinstance(owner, FusedOp) and not isinstance(owner, ViewOp) and owner.parent is block


def _host_part(region: Region) -> Region:
    """The launches and decisions of a region, taken out of it."""
    block = Block()
    for op in list(region.block.ops) if region.blocks else []:
        if isinstance(op, LaunchOp | Control):
            op.detach()
            block.add_op(op)
    return Region(block)


def _insert(new: Operation, before: Operation) -> None:
    block = before.parent
    assert block is not None
    new.location = before.location
    block.insert_op_before(new, before)
