"""Buffer lifetimes: decides how long each buffer lives and which ones the caller gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.plan.ops import BufferKind, BufferKindAttr, BufferOp, OutputOp, ViewOp, WeightOp
from mlirt.dialects.plan.step_numbers import StepNumbers
from mlirt.dialects.shared_attributes import integer
from mlirt.dialects.tensor_types import stored_bytes


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Give each `plan.buffer` the launches between which it is alive, and erase memory that nothing uses.

    A use of a view is a use of what it shows, and what a loop and something outside of it use lives through all
    iterations. A buffer that is exactly one output, from its first byte to its last,
    gets the kind `output`: the caller's own memory. What else is returned stays alive to the end and is copied out.

    Offsets in the arena are not chosen here: sizes may be known only at run time, and the planner of
    runtime/memory_planning.py places all buffers, by the same rule, when the engine sees the shapes (and when it is
    built, where they are fixed). An `offset` that is there is checked by verify-memory-plan.

    Before: `%b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory`
    After: `%b = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 2 : i64} : !plan.memory`
    """

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [
            inner for inner in op.body.block.ops if isinstance(inner, FuncOp) and not inner.is_declaration
        ]:
            _erase_unused(function)
            _plan(function)


def _erase_unused(function: FuncOp) -> None:
    for op in reversed(list(function.body.block.ops)):
        if isinstance(op, BufferOp | ViewOp | WeightOp) and op.buffer.first_use is None:
            op.detach()
            op.erase()


def _plan(function: FuncOp) -> None:
    ops = list(function.body.block.ops)
    numbers = StepNumbers.of(ops)
    end = max(len(numbers.launches) - 1, 0)
    for op in ops:
        if not isinstance(op, BufferOp):
            continue
        users = list(_users(op.buffer))
        returned = [user for user in users if isinstance(user, OutputOp)]
        first, last = numbers.lifetime(
            (user for user in users if not isinstance(user, OutputOp)), is_returned=bool(returned)
        )
        op.first = integer(first)
        op.last = integer(end if returned else last)
        op.kind = BufferKindAttr(BufferKind.OUTPUT if _is_output(op, returned) else BufferKind.ARENA)


def _users(buffer: SSAValue) -> Iterator[Operation]:
    """The launches, conditions and outputs that use a buffer, also through views."""
    for use in buffer.uses:
        if isinstance(use.operation, ViewOp):
            yield from _users(use.operation.buffer)
        else:
            yield use.operation


def _is_output(op: BufferOp, returned: list[OutputOp]) -> bool:
    """Whether a buffer is one output and nothing else."""
    if len(returned) != 1 or op.halo is not None or returned[0].buffer is not op.buffer:
        return False
    return op.bytes.value() == stored_bytes(returned[0].result.type)
