"""What the ops of warpgroups and of whole fragments mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import Float8E4M3FNType, VectorType, i32
from xdsl.ir import Operation

from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.fragment_map import FloatFragmentOp, FragmentPartOp, MapFragmentOp, SaturateFragmentOp
from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.interpreter_memory import DivergenceError, OutOfBoundsError, SharedBuffer
from mlirt.dialects.kernel.interpreter_simt import whole_warps
from mlirt.dialects.kernel.interpreter_tensor_copies import swizzle
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.simt import LARGEST_ALIGNMENT, WARP
from mlirt.dialects.kernel.warpgroup import (
    GROUP_LINES,
    LINE,
    ROWS,
    WARPGROUP,
    JoinColumnsOp,
    SetRegistersOp,
    WarpgroupAccumulatorsOp,
    WarpgroupMmaOp,
    WarpgroupWaitOp,
    WarpValueOp,
)
from mlirt.dialects.kernel.warpgroup_registers import WarpgroupMmaRegistersOp
from mlirt.dialects.kernel.warpgroup_turns import EachWarpgroupOp
from mlirt.dialects.tensor_types import numpy_dtype

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import SSAValue

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _warpgroups(machine: Machine, lanes: Lanes, op: Operation) -> Array:
    """The first lane of each warpgroup that executes an op; raises `DivergenceError` if only a part of one does."""
    import numpy as np

    active = np.flatnonzero(lanes.active)
    numbers = np.stack([lanes.block[active], lanes.thread[active] // WARPGROUP])
    _, first, count = np.unique(numbers, axis=1, return_index=True, return_counts=True)
    if (count < WARPGROUP).any():
        lane = int(active[first[count.argmin()]])
        raise DivergenceError(
            f"{machine.where(op)}: {count.min()} of {WARPGROUP} threads of a warpgroup are there "
            f"(block {lanes.block[lane]}, from thread {lanes.thread[lane]} on)"
        )
    return active[first]


def _name(lanes: Lanes, first: int) -> tuple[int, int]:
    return int(lanes.block[first]), int(lanes.thread[first]) // WARPGROUP


def _each(machine: Machine, lanes: Lanes, op: EachWarpgroupOp) -> None:
    """The warpgroups with a number, of all blocks, take turns with those with another one."""
    import numpy as np

    numbers = np.where(lanes.active, lanes.thread // op.threads.value.data, -1)
    parts = [lanes.split(np.flatnonzero(numbers == number)) for number in np.unique(numbers[lanes.active])]

    def task(part: Lanes) -> Callable[[], None]:
        return lambda: (machine.run_block(part, op.body.block), None)[1]

    machine.turns.concurrently([task(part) for part in parts])


def _mma(machine: Machine, lanes: Lanes, op: WarpgroupMmaOp) -> None:
    import numpy as np

    columns = op.columns.value.data
    sums = np.broadcast_to(lanes.array(op.accumulator), (lanes.count, columns // 2)).copy()
    for first in _warpgroups(machine, lanes, op):
        by_depth = [flag is not None for flag in (op.left_by_depth, op.right_by_depth)]
        line = op.line.value.data
        step = None if op.left_step is None else op.left_step.value.data
        left, left_at = _tile(machine, lanes, op, first, (op.left, op.left_index), ROWS, by_depth[0], line, step)
        right, right_at = _tile(machine, lanes, op, first, (op.right, op.right_index), columns, by_depth[1], line)
        product = _widened(_as_left(left, op.kind.data), op.kind.data) @ _widened(right, op.kind.data).T
        # Row 16 w + 8 h + g, column 8 j + 2 t + e -> thread (w, g, t), sum (j, h, e).
        parts = product.reshape(4, 2, 8, columns // 8, 4, 2).transpose(0, 2, 4, 3, 1, 5)
        sums[first : first + WARPGROUP] += parts.reshape(WARPGROUP, -1).astype(sums.dtype)
        machine.stages.product(_name(lanes, first), [left_at, right_at])
    lanes[op.result] = sums


def _mma_registers(machine: Machine, lanes: Lanes, op: WarpgroupMmaRegistersOp) -> None:
    import ml_dtypes
    import numpy as np

    columns = op.columns.value.data
    dtype = np.dtype(np.float16) if op.kind.data is MmaKind.F16 else np.dtype(ml_dtypes.bfloat16)
    sums = np.broadcast_to(lanes.array(op.accumulator), (lanes.count, columns // 2)).copy()
    fragments = [np.ascontiguousarray(np.broadcast_to(lanes.array(one), (lanes.count, 4))) for one in op.left]
    for first in _warpgroups(machine, lanes, op):
        right, right_at = _tile(machine, lanes, op, first, (op.right, op.right_index), columns, True)
        # Register 2 h + s of thread (w, g, t): row 16 w + 8 s + g, columns 8 h + 2 t + e.
        parts = [one[first : first + WARPGROUP].view(dtype).reshape(4, 8, 4, 2, 2, 2) for one in fragments]
        left = np.concatenate([part.transpose(0, 4, 1, 3, 2, 5).reshape(ROWS, 16) for part in parts], axis=1)
        product = left.astype(np.float64) @ right.astype(np.float64).T
        found = product.reshape(4, 2, 8, columns // 8, 4, 2).transpose(0, 2, 4, 3, 1, 5)
        sums[first : first + WARPGROUP] += found.reshape(WARPGROUP, -1).astype(sums.dtype)
        machine.stages.product(_name(lanes, first), [right_at])
    lanes[op.result] = sums


def _as_left(values: Array, kind: MmaKind) -> Array:
    """Bytes that the matrix unit reads without a sign."""
    import numpy as np

    return values.view(np.uint8) if kind == MmaKind.U8 else values


def _widened(values: Array, kind: MmaKind) -> Array:
    """What the matrix unit reads, in a type that holds sums of products exactly enough."""
    import numpy as np

    if kind == MmaKind.E4M3:
        values = values.view(numpy_dtype(Float8E4M3FNType()))
    if kind == MmaKind.TF32:
        values = (values.view(np.int32) & np.int32(~0x1FFF)).view(np.float32)  # it reads 10 bits of mantissa
    return values.astype(np.int64 if kind.sums == i32 else np.float64)


def _tile(
    machine: Machine,
    lanes: Lanes,
    op: Operation,
    first: int,
    where: tuple[SSAValue, SSAValue],
    own: int,
    by_depth: bool,
    line_bytes: int = LINE,
    step: int | None = None,
) -> tuple[Array, tuple[SharedBuffer, Array]]:
    """The elements [own, depth] of a tile, and where they lie; groups of lines begin `step` lines apart."""
    import numpy as np

    memory = lanes.buffer(where[0])
    assert isinstance(memory, SharedBuffer)
    size = memory.data.itemsize
    starts = lanes.per_lane(where[1])[first : first + WARPGROUP]
    if (starts != starts[0]).any():
        raise DivergenceError(f"{machine.where(op)}: the threads of a warpgroup name different tiles")
    alignment = LARGEST_ALIGNMENT if step is None else line_bytes
    if int(starts[0]) * size % alignment:
        raise OutOfBoundsError(f"{machine.where(op)}: element {starts[0]} is not aligned to {alignment} bytes")
    depth = line_bytes // size
    i, k = np.arange(own)[:, None], np.arange(depth)[None, :]
    line, column = (i // depth * depth + k, i % depth) if by_depth else (i, k)
    line = line if step is None else line // GROUP_LINES * step + line % GROUP_LINES
    # Pieces are exchanged by where they lie in memory, which itself is aligned.
    index = (swizzle(int(starts[0]) * size + line * line_bytes + column * size, line_bytes) // size).reshape(-1)
    at = memory.locate(lanes.access(index, np.full(index.size, first), machine.where(op)))
    return machine.stages.read(memory, at, machine.where(op)).reshape(own, depth), (memory, at)


def _wait(machine: Machine, lanes: Lanes, op: WarpgroupWaitOp) -> None:
    for first in _warpgroups(machine, lanes, op):
        machine.stages.wait(_name(lanes, first), op.pending.value.data)


def _sums(machine: Machine, lanes: Lanes, op: WarpgroupAccumulatorsOp) -> None:
    for first in _warpgroups(machine, lanes, op):
        machine.stages.wait(_name(lanes, first), op.pending.value.data)
    lanes[op.result] = lanes.array(op.accumulator)


def _set_registers(machine: Machine, lanes: Lanes, op: SetRegistersOp) -> None:
    _warpgroups(machine, lanes, op)


def _warp_value(machine: Machine, lanes: Lanes, op: WarpValueOp) -> None:
    import numpy as np

    whole_warps(machine, lanes, op)
    lanes[op.result] = lanes.per_lane(op.value)[np.arange(lanes.count) // WARP * WARP]


def _join_columns(machine: Machine, lanes: Lanes, op: JoinColumnsOp) -> None:
    import numpy as np

    whole_warps(machine, lanes, op)
    width, count = op.width.value.data, length(op.value)
    values = np.broadcast_to(lanes.array(op.value), (lanes.count, count)).reshape(-1, 8, 4, count // 4, 2, 2)
    rows = values.transpose(0, 1, 4, 3, 2, 5)  # [warp, g, h, j, t, e]: the columns are j, t, e
    joined = rows.reshape(-1, 8, 2, count // (2 * width), 4, width).transpose(0, 1, 4, 2, 3, 5)
    lanes[op.result] = joined.reshape(lanes.count, count)


def _part(machine: Machine, lanes: Lanes, op: FragmentPartOp) -> None:
    first = op.position.value.data
    lanes[op.result] = lanes.array(op.fragment)[:, first : first + length(op.result)]


def _saturate(machine: Machine, lanes: Lanes, op: SaturateFragmentOp) -> None:
    import numpy as np

    dtype = numpy_dtype(fragment(op.result).get_element_type())
    limits = np.iinfo(dtype)
    lanes[op.result] = np.clip(lanes.array(op.fragment), limits.min, limits.max).astype(dtype)


def _float(machine: Machine, lanes: Lanes, op: FloatFragmentOp) -> None:
    import numpy as np

    lanes[op.result] = lanes.array(op.fragment).astype(np.float32)


def _map(machine: Machine, lanes: Lanes, op: MapFragmentOp) -> None:
    import numpy as np

    count = length(op.result)
    inner = lanes.split(np.repeat(np.arange(lanes.count), count))
    for name, value in zip(op.body.block.args, op.operands, strict=True):
        if isinstance(value.type, VectorType):
            inner[name] = np.broadcast_to(lanes.array(value), (lanes.count, count)).reshape(-1)
        else:
            inner[name] = np.repeat(lanes.per_lane(value), count)
    (result,) = machine.run_block(inner, op.body.block)
    lanes[op.result] = inner.per_lane(result).reshape(lanes.count, count)


RULES = {
    "kernel.warpgroup_mma": _mma,
    "kernel.warpgroup_mma_registers": _mma_registers,
    "kernel.warpgroup_wait": _wait,
    "kernel.warpgroup_accumulators": _sums,
    "kernel.set_registers": _set_registers,
    "kernel.each_warpgroup": _each,
    "kernel.warp_value": _warp_value,
    "kernel.join_columns": _join_columns,
    "kernel.fragment_part": _part,
    "kernel.map_fragment": _map,
    "kernel.saturate_fragment": _saturate,
    "kernel.float_fragment": _float,
}
