"""Running sums and products across memory, on a CPU: neighbouring columns go through the rows together, and memory of
the worker holds what each of them has come to.

for each task, which has some columns: for each row: for each vector of columns: total += x; y = total
"""

from __future__ import annotations

from xdsl.ir import Attribute

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.tensor_types import dims, element_of, is_bool
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.nest_words import NestOperand
from mlirt.kernels.lib.language.tile_words import lane_loop, tasks, worker_memory
from mlirt.kernels.lib.language.words import ceil_div, extent
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.cumulative import total_type
from mlirt.kernels.rows.running_totals import totals_of

OPS = (CumulativeOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

_CHUNK = 2048  # columns of a task
_MIN_COLUMNS = 48  # fewer do not fill the lanes of a few vectors
_MIN_ROWS = 32  # over fewer the totals of a vector stay in registers at once


def lower(op: CumulativeOp, lowering: Lowering) -> bool:
    """Only columns that are neighbours in both tensors."""
    k, element = lowering.kernel("columns"), element_of(op.input.type)
    operands = [whole(value, lowering) for value in (op.input, op.output)]
    code, border = rows(k, dims(op.input.type), op.axis.value.data, operands)
    (*_, columns), (length,) = code.split(border)
    last = len(code.nest.extents) - 2
    limits = (columns, _MIN_COLUMNS), (length, _MIN_ROWS)
    is_few = any(isinstance(size, int) and size < least for size, least in limits)
    if last < 0 or is_few or is_bool(element) or any(one.steps[last] != 1 for one in code.nest.operands):
        return False
    build(k, _columns, op, code, border, total_type(op, lowering), lowering.target.vector_bits // 32)
    k.finish(op)
    return True


@kernel
def _columns(op: CumulativeOp, code: NestCode, border: int, wide: Attribute, lanes: int) -> None:
    x, y, ((*others, columns), (rows,)) = NestOperand(code, 0, wide), NestOperand(code, 1, wide), code.split(border)
    combiner = totals_of(op, wide)
    (neutral,) = combiner.neutral
    totals, length, width = worker_memory(neutral.type, _CHUNK), extent(rows), extent(columns)
    for *outer, chunk in tasks([*others, ceil_div(columns, _CHUNK)]):
        here = [*outer, chunk * _CHUNK]
        count = min(width - here[-1], _CHUNK)
        for lane in lane_loop(count, lanes):
            totals[lane] = neutral
        for i in range(length):
            at = [*here, length - 1 - i if op.reverse.value.data else i]
            for lane in lane_loop(count, lanes):
                before = totals[lane]
                total = combiner.of(before, x.moved([(lane, 1)])[at])
                totals[lane] = total
                y.moved([(lane, 1)])[at] = before if op.exclusive.value.data else total
