"""What fragments, matrix units and asynchronous copies mean, lane-parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import i32

from mlirt.dialects.kernel.buffers import length, memory
from mlirt.dialects.kernel.fragment import (
    FillFragmentOp,
    FragmentElementOp,
    FragmentOp,
    LoadFragmentOp,
    OuterProductOp,
    StoreFragmentOp,
)
from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.interpreter_memory import OutOfBoundsError
from mlirt.dialects.kernel.interpreter_simt import whole_warps
from mlirt.dialects.kernel.matrix_unit import PACKED, LoadMatrixOp, MmaKind, MmaOp
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_WIDE = 16  # bytes of the widest access


def _fill(machine: Machine, lanes: Lanes, op: FillFragmentOp) -> None:
    import numpy as np

    value = lanes.array(op.value)
    lanes[op.result] = np.repeat(np.atleast_1d(value)[:, None], length(op.result), axis=1)


def _fragment(machine: Machine, lanes: Lanes, op: FragmentOp) -> None:
    import numpy as np

    lanes[op.result] = np.stack([lanes.per_lane(value) for value in op.values], axis=1)


def _element(machine: Machine, lanes: Lanes, op: FragmentElementOp) -> None:
    lanes[op.result] = lanes.array(op.fragment)[:, op.position.value.data]


def _accesses(machine: Machine, lanes: Lanes, op: LoadFragmentOp | StoreFragmentOp) -> tuple[Array, Array, Array]:
    """(lane, position in the fragment, element index) of each element that is accessed."""
    import numpy as np

    offsets = np.array(op.offset_list(), np.int64)
    stride = lanes.per_lane(op.stride)[:, None] if op.stride is not None else 1
    index = lanes.per_lane(op.index)[:, None] + offsets * stride
    wanted = np.broadcast_to(lanes.active[:, None], index.shape)
    if op.valid is not None:
        wanted = wanted & (np.arange(len(offsets)) < lanes.per_lane(op.valid)[:, None])
    if op.wide.value.data:
        _check_alignment(machine, op, index, wanted)
    lane, position = np.nonzero(wanted)
    return lane, position, index[lane, position]


def _check_alignment(machine: Machine, op: LoadFragmentOp | StoreFragmentOp, index: Array, wanted: Array) -> None:
    """The groups of elements that are accessed at once start at multiples of 16 bytes."""
    group = op.group(op.buffer)
    misaligned = wanted[:, ::group] & (index[:, ::group] % group != 0)
    if misaligned.any():
        first = int(index[:, ::group][misaligned][0])
        bytes_ = group * byte_width(memory(op.buffer).get_element_type())
        raise OutOfBoundsError(f"{machine.where(op)}: {bytes_} bytes at element {first} are not {bytes_}-byte aligned")


def _load_fragment(machine: Machine, lanes: Lanes, op: LoadFragmentOp) -> None:
    import numpy as np

    buffer = lanes.buffer(op.buffer)
    lane, position, index = _accesses(machine, lanes, op)
    result = np.zeros((lanes.count, length(op.result)), buffer.data.dtype)
    result[lane, position] = buffer.read(lanes.access(index, lane, machine.where(op)))
    lanes[op.result] = result


def _store_fragment(machine: Machine, lanes: Lanes, op: StoreFragmentOp) -> None:
    import numpy as np

    lane, position, index = _accesses(machine, lanes, op)
    values = np.broadcast_to(lanes.array(op.value), (lanes.count, length(op.value)))
    lanes.buffer(op.buffer).write(lanes.access(index, lane, machine.where(op)), values[lane, position])


def _outer_product(machine: Machine, lanes: Lanes, op: OuterProductOp) -> None:
    left, right = lanes.array(op.left), lanes.array(op.right)
    products = left[:, :, None] * right[:, None, :]
    lanes[op.result] = lanes.array(op.accumulator) + products.reshape(len(products), -1)


def _load_matrix(machine: Machine, lanes: Lanes, op: LoadMatrixOp) -> None:
    import numpy as np

    whole_warps(machine, lanes, op)
    buffer = lanes.buffer(op.buffer)
    width = _WIDE // op.element_bytes
    active = np.flatnonzero(lanes.active)
    result = np.zeros((lanes.count, length(op.result)), np.int32)
    for k in range(op.count.value.data):
        start = lanes.per_lane(op.index)[active] + k * op.step.value.data
        if (start % width).any():
            raise OutOfBoundsError(f"{machine.where(op)}: a row starts at an element that is not {_WIDE}-byte aligned")
        index = (start[:, None] + np.arange(width)).reshape(-1)
        rows = buffer.read(lanes.access(index, np.repeat(active, width), machine.where(op)))
        matrices = rows.view(np.uint16).reshape(-1, 4, 8, 8)
        matrices = matrices.swapaxes(2, 3) if op.transpose.value.data else matrices
        # [warp, matrix, row, pair] -> [warp, thread = row * 4 + pair, matrix]
        pairs = np.ascontiguousarray(matrices).view(np.int32).reshape(-1, 4, WARP).swapaxes(1, 2)
        result[active, 4 * k : 4 * k + 4] = pairs.reshape(-1, 4)
    lanes[op.result] = result


def _mma(machine: Machine, lanes: Lanes, op: MmaOp) -> None:
    import numpy as np

    whole_warps(machine, lanes, op)
    rows, columns = op.rows.value.data, op.columns.value.data
    kind = op.kind.data
    packed = PACKED[kind]

    def per_warp(value: Array, count: int) -> Array:
        return np.broadcast_to(value, (lanes.count, count)).reshape(-1, 8, 4, count)  # [warp, group, thread, register]

    left = _unpack(per_warp(lanes.array(op.left), 4 * rows), kind)  # [warp, g, t, register, e]
    signed = MmaKind.S8 if kind == MmaKind.U8 else kind
    right = _unpack(per_warp(lanes.array(op.right), 2 * columns), signed)
    # Register 4 i + 2 h + s of thread (g, t): row 16 i + 8 s + g, columns (4 h + t) * packed + e.
    a = left.reshape(-1, 8, 4, rows, 2, 2, packed).transpose(0, 3, 5, 1, 4, 2, 6).reshape(-1, 16 * rows, 8 * packed)
    # Register 2 j + h of thread (g, t): column 8 j + g, rows (4 h + t) * packed + e.
    b = right.reshape(-1, 8, 4, columns, 2, packed).transpose(0, 4, 2, 5, 3, 1).reshape(-1, 8 * packed, 8 * columns)
    products = np.matmul(a, b).reshape(-1, rows, 2, 8, columns, 4, 2)  # [warp, i, s, g, j, t, e]
    accumulator = np.broadcast_to(lanes.array(op.accumulator), (lanes.count, 4 * rows * columns))
    delta = products.transpose(0, 3, 5, 1, 4, 2, 6).reshape(lanes.count, -1)
    lanes[op.result] = (accumulator + delta).astype(accumulator.dtype)


def _unpack(registers: Array, kind: MmaKind) -> Array:
    """The elements of 32-bit registers in a type that holds their products exactly enough."""
    import ml_dtypes
    import numpy as np

    dtype = {
        MmaKind.F16: np.dtype(np.float16),
        MmaKind.BF16: np.dtype(ml_dtypes.bfloat16),
        MmaKind.S8: np.dtype(np.int8),
        MmaKind.U8: np.dtype(np.uint8),
    }[kind]
    registers = np.ascontiguousarray(registers)
    wide = np.int64 if kind.sums == i32 else np.float64
    return registers[..., None].view(dtype).astype(wide)


RULES = {
    "kernel.fill_fragment": _fill,
    "kernel.fragment": _fragment,
    "kernel.fragment_element": _element,
    "kernel.load_fragment": _load_fragment,
    "kernel.store_fragment": _store_fragment,
    "kernel.outer_product": _outer_product,
    "kernel.load_matrix": _load_matrix,
    "kernel.mma": _mma,
}
