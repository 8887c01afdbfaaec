"""Lets launches that need nothing of each other run at the same time on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.kernel.worker import PARTS
from mlirt.dialects.plan.ops import BufferOp, LaunchOp, ViewOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.memory.launch_dependences import Written, dependences, stretches, written_by_kernel
from mlirt.passes.options import option

_PARTS = 8  # about the parts of a launch that a machine has under way at once


@dataclass(frozen=True)
class JoinIndependentLaunchesPass(ModulePass):
    """Mark a launch that the next one need not wait for: the workers get the tasks of both at once.

    So there are fewer moments in which all workers wait for each other, and two launches that keep one worker busy each
    take the time of one. The next launch is independent of all that it is joined with, which are at most `most`. What
    they use is alive through all of them, and so they never share memory; launches on more than `most_bytes` are done
    one by one, as a barrier is nothing beside them. Those that are marked `sequential` are not joined with what stands
    in front of them, for which the other ones of them may have to wait.

    Before:

        plan.launch %x, %a {kernel = @f, ..} : !plan.memory, !plan.memory
        plan.launch %x, %b {kernel = @g, ..} : !plan.memory, !plan.memory

    After:

        plan.launch %x, %a {kernel = @f, .., no_barrier} : !plan.memory, !plan.memory
        plan.launch %x, %b {kernel = @g, ..} : !plan.memory, !plan.memory
    """

    name = "join-independent-launches"

    most: int = option(8, at_least=1)
    most_bytes: int = option(1 << 21, at_least=0)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        written = written_by_kernel(op.body.block.ops)
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                sizes = {**typical_values(function.body.block), PARTS: _PARTS}
                launches = [one for one in function.walk() if isinstance(one, LaunchOp)]
                for block in dict.fromkeys(launch.parent for launch in launches):
                    if block is not None:
                        self._join(block, written, sizes)

    def _join(self, block: Block, written: Written, sizes: Mapping[str, int]) -> None:
        for launches in stretches(block):
            large = [self._is_large(launch, sizes) for launch in launches]
            start = 0  # of the launches that run together
            for number, needed in enumerate(dependences(launches, written)):
                is_full = number - start >= self.most or any(large[max(number - 1, 0) : number + 1])
                if is_full or _begins(launches, number) or any(earlier >= start for earlier in needed):
                    start = number
                elif number > start:
                    launches[number - 1].no_barrier = UnitAttr()

    def _is_large(self, launch: LaunchOp, sizes: Mapping[str, int]) -> bool:
        """Whether it keeps all workers busy for long, and what it uses would be alive for longer than it must."""
        roots = dict.fromkeys(map(_root, launch.buffers))
        used = sum(typical(root.bytes.value(), sizes) for root in roots if isinstance(root, BufferOp))
        return launch.sequential is None and used > self.most_bytes


def _root(buffer: SSAValue) -> Operation | Block:
    owner = buffer.owner
    return _root(owner.source) if isinstance(owner, ViewOp) else owner


def _begins(launches: Sequence[LaunchOp], number: int) -> bool:
    """Whether a launch is the first of some that are marked `sequential`: they gain most from each other."""
    before = launches[number - 1 : number]
    return launches[number].sequential is not None and all(one.sequential is None for one in before)
