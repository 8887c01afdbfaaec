"""The part of a kernel's tasks that one worker does, and where it has memory of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types


@intrinsic
def share(context: Any, tasks: Any, worker: Any, workers: Any) -> Any:
    """`(first, last)`: worker `worker` of `workers` does tasks first .. last - 1; the parts differ by one at most."""
    pair = types.UniTuple(types.int64, 2)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        tasks, worker, workers = operands
        following = builder.add(worker, ir.IntType(64)(1))
        bounds = [builder.udiv(builder.mul(tasks, number), workers) for number in (worker, following)]
        return cgutils.pack_array(builder, bounds)

    return pair(types.int64, types.int64, types.int64), codegen


@intrinsic
def worker_slot(context: Any, tasks: Any, slots: Any, worker: Any, workers: Any) -> Any:
    """A number below `slots` for each of `workers` that does some of the tasks.

    Where there are fewer tasks than workers that is the first task, which nobody else has; else it is the worker.
    """

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        tasks, slots, worker, workers = operands
        first = builder.udiv(builder.mul(tasks, worker), workers)
        number = builder.select(builder.icmp_unsigned("<", tasks, workers), first, worker)
        last = builder.sub(slots, ir.IntType(64)(1))
        return builder.select(builder.icmp_unsigned("<", number, last), number, last)

    return types.int64(types.int64, types.int64, types.int64, types.int64), codegen
