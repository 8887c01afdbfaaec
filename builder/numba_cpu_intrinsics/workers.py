"""The part of a kernel's tasks that one worker does."""

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
