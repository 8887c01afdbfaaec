"""Vectorization on a CPU: whether iterations of a loop can be the lanes of a vector, and how memory lies for that."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.kernel.core import SMALL_STEPS, LoadOp, ParallelOp, ReduceOp, StoreOp, YieldOp, stride_values
from mlirt.dialects.kernel.remainder import computes_a_number
from mlirt.dialects.kernel.varying import varying_values


def gathers(block: Block, index: SSAValue) -> int | None:
    """How many loads have to fetch their lanes one by one if the loop over `index` becomes lanes; None if it cannot."""
    varying = varying_values(block, [index])
    count = 0
    for op in block.walk():
        cost = _cost(op, index, varying)
        if cost is None:
            return None
        count += cost
    return count


def _cost(op: Operation, index: SSAValue, varying: set[SSAValue]) -> int | None:
    if isinstance(op, LoadOp):
        step = _step(op, index, varying)
        return None if step is None else int(step not in (0, 1, *SMALL_STEPS))
    if isinstance(op, StoreOp):
        return 0 if _step(op, index, varying) == 1 else None
    if isinstance(op, ParallelOp | ReduceOp):
        return None if any(extent in varying for extent in op.extents) else 0
    if isinstance(op, scf.ForOp):
        return None if {op.lb, op.ub, op.step} & varying else 0
    if isinstance(op, scf.IfOp):
        return None if op.cond in varying else 0
    return 0 if computes_a_number(op) or isinstance(op, scf.YieldOp | YieldOp) else None


def _step(op: LoadOp | StoreOp, index: SSAValue, varying: set[SSAValue]) -> SSAValue | int | None:
    """How far apart in memory the lanes lie; None if there is no one distance."""
    steps: list[SSAValue | int] = []
    for own, stride in zip(op.indices, stride_values(op), strict=True):
        if own is index:
            steps.append(stride)
        elif own in varying and stride != 0:
            return None
    nonzero = [step for step in steps if step != 0]
    if len(nonzero) > 1:
        return None
    return nonzero[0] if nonzero else 0
