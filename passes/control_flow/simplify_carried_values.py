"""Simplifies loop-carried values: those that never change or that nothing reads are carried no longer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from mlirt.passes.control_flow.region_rewriting import control_ops, is_pure, replace


@dataclass(frozen=True)
class SimplifyCarriedValuesPass(ModulePass):
    """Read what a loop hands on as it is in front of the loop, and drop what only serves to compute itself.

    Exporters carry weights through loops, where they would be neither constants nor loop invariants, and counters that
    nothing counts with.

    Before:

        %y, %u = scf.for %i = %zero to %n step %one iter_args(%a = %x, %v = %w) -> (tensor<4xf32>, tensor<4xf32>) {
          %b = trt.elementwise prod %a, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          scf.yield %b, %v : tensor<4xf32>, tensor<4xf32>
        }

    After:

        %y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf32>) {
          %b = trt.elementwise prod %a, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          scf.yield %b : tensor<4xf32>
        }
    """

    name = "simplify-carried-values"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in control_ops(op):
            if isinstance(loop, scf.ForOp | scf.WhileOp):
                carried = _Carried.of(loop)
                carried.replace_invariants()
                carried.drop_unread()


@dataclass
class _Carried:
    """What goes round in a loop: slots, which the yield fills.

    The block arguments of a counted loop are its slots; the first region of a while loop passes values on.
    """

    loop: scf.ForOp | scf.WhileOp
    starts: list[SSAValue]
    """What each slot holds in the first iteration."""
    heads: list[BlockArgument]
    """The arguments that have the slot's value when an iteration begins."""
    passed: list[SSAValue]
    """What the body and the readers of the loop see."""
    seen: list[BlockArgument]
    """The body's arguments, one for each value that is passed."""

    @staticmethod
    def of(loop: scf.ForOp | scf.WhileOp) -> _Carried:
        if isinstance(loop, scf.ForOp):
            arguments = list(loop.body.block.args[1:])
            return _Carried(loop, list(loop.iter_args), arguments, list(arguments), arguments)
        before, body = loop.before_region.block, loop.after_region.block
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        return _Carried(loop, list(loop.arguments), list(before.args), list(condition.args), list(body.args))

    @property
    def body(self) -> Block:
        return self.loop.regions[-1].block

    @property
    def following(self) -> list[SSAValue]:
        """What each slot holds in the next iteration."""
        end = self.body.last_op
        assert end is not None
        return list(end.operands)

    def replace_invariants(self) -> None:
        for head, start, after in zip(self.heads, self.starts, self.following, strict=True):
            shown = [k for k, value in enumerate(self.passed) if value is head]
            if after is not head and not any(after is self.seen[k] for k in shown):
                continue
            for k in shown:
                self.loop.results[k].replace_all_uses_with(start)
                self.seen[k].replace_all_uses_with(start)
            head.replace_all_uses_with(start)
            self.passed = [start if value is head else value for value in self.passed]

    def drop_unread(self) -> None:
        needed = self._needed()
        slots = [k for k, head in enumerate(self.heads) if head in needed]
        shown = slots
        if isinstance(self.loop, scf.WhileOp):
            read = [result.first_use is not None for result in self.loop.results]
            shown = [k for k, argument in enumerate(self.seen) if read[k] or argument in needed]
        if len(slots) == len(self.heads) and len(shown) == len(self.seen):
            return
        for region in self.loop.regions:
            _erase_unneeded(region.block, needed)
        self._rebuild(slots, shown)

    def _needed(self) -> set[SSAValue]:
        """The values that a result, an effect or the condition depends on."""
        needed: set[SSAValue] = set()
        todo = [value for region in self.loop.regions for op in region.block.ops for value in _roots(op)]
        for k, result in enumerate(self.loop.results):
            if result.first_use is not None:
                todo += [self.seen[k], self.passed[k]]
        slots = {head: k for k, head in enumerate(self.heads)}
        shown = {argument: k for k, argument in enumerate(self.seen)}
        following = self.following
        while todo:
            value = todo.pop()
            if value in needed:
                continue
            needed.add(value)
            if isinstance(value, BlockArgument):
                todo += [following[slots[value]]] if value in slots else []
                todo += [self.passed[shown[value]]] if value in shown else []
            elif isinstance(value.owner, Operation) and value.owner.parent in self._blocks():
                todo += _read(value.owner)
        return needed

    def _blocks(self) -> list[Block]:
        return [region.block for region in self.loop.regions]

    def _rebuild(self, slots: list[int], shown: list[int]) -> None:
        loop, end = self.loop, self.body.last_op
        assert end is not None
        end.operands = [self.following[k] for k in slots]
        starts = [self.starts[k] for k in slots]
        results = list(loop.results)
        if isinstance(loop, scf.WhileOp):
            condition = loop.before_region.block.last_op
            assert isinstance(condition, scf.ConditionOp)
            condition.operands = [condition.condition, *(self.passed[k] for k in shown)]
            _erase_arguments(self.heads, slots)
        _erase_arguments(self.seen, shown)
        regions: list[Region] = [region.clone() for region in loop.regions]
        made: scf.ForOp | scf.WhileOp
        if isinstance(loop, scf.WhileOp):
            made = scf.WhileOp(starts, [results[k].type for k in shown], regions[0], regions[1])
        else:
            made = scf.ForOp(loop.lb, loop.ub, loop.step, starts, regions[0])
        made.location = loop.location
        block = loop.parent
        assert block is not None
        block.insert_op_before(made, loop)
        for k, new in zip(shown, made.results, strict=True):
            new.name_hint = results[k].name_hint
            results[k].replace_all_uses_with(new)
        replace(loop, results)


def _read(op: Operation) -> Iterable[SSAValue]:
    """What an op reads, with all that is inside of it."""
    return [value for inner in op.walk() for value in inner.operands]


def _roots(op: Operation) -> Iterable[SSAValue]:
    """What must be computed because of an op, whoever reads its results."""
    if isinstance(op, scf.YieldOp):
        return []
    if isinstance(op, scf.ConditionOp):
        return [op.condition]
    return [] if is_pure(op) else [*_read(op), *op.results]


def _erase_unneeded(block: Block, needed: set[SSAValue]) -> None:
    """Erase ops that nothing of what stays depends on; values that end the block are dropped by its owner."""
    for op in reversed(list(block.ops)):
        if not isinstance(op, scf.YieldOp | scf.ConditionOp) and is_pure(op) and not needed & set(op.results):
            op.detach()
            op.drop_all_references()
            op.erase(safe_erase=False)


def _erase_arguments(arguments: list[BlockArgument], kept: list[int]) -> None:
    for k in reversed(range(len(arguments))):
        if k not in kept:
            arguments[k].block.erase_arg(arguments[k])
