"""What ops on rows of accumulators mean, lane-parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.accumulators import (
    ExponentialRowsOp,
    LimitColumnsOp,
    PackAccumulatorsOp,
    ReduceRowsOp,
    ScaleRowsOp,
    columns_of,
    rows_of,
)
from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.matrix_unit import MmaKind

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _reduce(machine: Machine, lanes: Lanes, op: ReduceRowsOp) -> None:
    import numpy as np

    values, rows = lanes.array(op.accumulators), np.array(rows_of(length(op.accumulators), op.row_count))
    combine = np.add if op.kind.data is ReduceKind.ADD else np.fmax
    with np.errstate(all="ignore"):
        parts = [combine.reduce(values[:, rows == row], axis=1) for row in range(2 * op.row_count)]
    lanes[op.result] = np.stack(parts, axis=1)


def _scale(machine: Machine, lanes: Lanes, op: ScaleRowsOp) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        factors = lanes.array(op.factors)[:, rows_of(length(op.accumulators), op.row_count)]
        lanes[op.result] = lanes.array(op.accumulators) * factors


def _exponential(machine: Machine, lanes: Lanes, op: ExponentialRowsOp) -> None:
    import numpy as np

    shifts = lanes.array(op.shifts)[:, rows_of(length(op.accumulators), op.row_count)]
    with np.errstate(all="ignore"):
        scale = lanes.per_lane(op.scale)[:, None]
        lanes[op.result] = np.exp2(scale * lanes.array(op.accumulators) - scale * shifts)


def _limit(machine: Machine, lanes: Lanes, op: LimitColumnsOp) -> None:
    import numpy as np

    count = length(op.accumulators)
    column = lanes.per_lane(op.first)[:, None] + np.array(columns_of(count, op.row_count))
    inside = column < lanes.array(op.limits)[:, rows_of(count, op.row_count)]
    lanes[op.result] = np.where(inside, lanes.array(op.accumulators), np.float32(-np.inf))


def _pack(machine: Machine, lanes: Lanes, op: PackAccumulatorsOp) -> None:
    import ml_dtypes
    import numpy as np

    dtype = np.dtype(np.float16) if op.kind.data is MmaKind.F16 else np.dtype(ml_dtypes.bfloat16)
    with np.errstate(over="ignore"):
        values = lanes.array(op.accumulators)[:, op.positions()].astype(dtype)
    lanes[op.result] = np.ascontiguousarray(values).view(np.int32)


RULES = {
    "kernel.reduce_rows": _reduce,
    "kernel.scale_rows": _scale,
    "kernel.exponential_rows": _exponential,
    "kernel.limit_columns": _limit,
    "kernel.pack_accumulators": _pack,
}
