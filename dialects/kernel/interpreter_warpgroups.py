"""What warpgroups read and multiply, and what each of them, and each element of a fragment, does by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import Float8E4M3FNType, VectorType, i32

from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.kernel.fragment_map import MapFragmentOp
from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.interpreter_memory import DivergenceError, OutOfBoundsError, SharedBuffer
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.simt import MAX_ALIGNMENT, WARPGROUP
from mlirt.dialects.kernel.warp_specialization import EachWarpgroupOp
from mlirt.dialects.kernel.warpgroup import GROUP_LINES, LINE
from mlirt.dialects.layout import Layout, Swizzle, arranged
from mlirt.dialects.tensor_types import numpy_dtype

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine
    from mlirt.dialects.kernel.interpreter_instruction import Site

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _each(machine: Machine, lanes: Lanes, op: EachWarpgroupOp) -> None:
    """The warpgroups with a number, of all blocks, take turns with those with another one."""
    import numpy as np

    numbers = np.where(lanes.active, lanes.thread // op.threads.value.data, -1)
    parts = [lanes.split(np.flatnonzero(numbers == number)) for number in np.unique(numbers[lanes.active])]

    def task(part: Lanes) -> Callable[[], None]:
        return lambda: (machine.run_block(part, op.body.block), None)[1]

    machine.coroutines.concurrently([task(part) for part in parts])


def as_left(values: Array, kind: MmaKind) -> Array:
    """Bytes that the matrix unit reads without a sign."""
    import numpy as np

    return values.view(np.uint8) if kind == MmaKind.U8 else values


def widened(values: Array, kind: MmaKind) -> Array:
    """What the matrix unit reads, in a type that holds sums of products exactly enough."""
    import numpy as np

    if kind == MmaKind.E4M3:
        values = values.view(numpy_dtype(Float8E4M3FNType()))
    if kind == MmaKind.TF32:
        values = (values.view(np.int32) & np.int32(~0x1FFF)).view(np.float32)  # it reads 10 bits of mantissa
    return values.astype(np.int64 if kind.accumulator_type == i32 else np.float64)


def product_of_rows(product: Array) -> Array:
    """Each thread's part of a product: row 16 w + 8 h + g, column 8 j + 2 t + e -> thread (w, g, t), sum (j, h, e)."""
    return arranged(product, "(w h g) (j t e)", "(w g t) (j h e)", h=2, g=8, t=4, e=2)


def read_tile(
    site: Site,
    row: int,
    place: tuple[Any, Array],
    own: int,
    by_depth: bool,
    line_bytes: int = LINE,
    step: int | None = None,
    threads: int = WARPGROUP,
) -> tuple[Array, tuple[SharedBuffer, Array]]:
    """The elements [own, depth] of a tile, and where they lie; groups of lines begin `step` lines apart."""
    import numpy as np

    memory, starts = place[0].buffer, place[1][row : row + threads]
    assert isinstance(memory, SharedBuffer)
    size, start = memory.data.itemsize, int(starts[0])
    if (starts != start).any():
        raise DivergenceError(f"{site.where}: the threads of a warpgroup name different tiles")
    alignment = MAX_ALIGNMENT if step is None else line_bytes
    if start * size % alignment:
        raise OutOfBoundsError(f"{site.where}: element {start} is not aligned to {alignment} bytes")
    depth = line_bytes // size
    if by_depth:
        layout = Layout(((own // depth, depth), depth), ((depth * depth, 1), depth))
    else:
        layout = Layout(((-(-own // GROUP_LINES), GROUP_LINES), depth), ((depth * (step or GROUP_LINES), depth), 1))
    offset = layout(np.arange(own)[:, None], np.arange(depth))
    # Pieces are exchanged by where they lie in memory, which itself is aligned.
    index = (Swizzle.of_lines(line_bytes)((start + offset) * size) // size).reshape(-1)
    lane = np.full(index.size, site.active[row])
    at = memory.locate(site.lanes.access(index, lane, site.where))
    return site.machine.stages.read(memory, at, site.where).reshape(own, depth), (memory, at)


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


RULES = {"kernel.each_warpgroup": _each, "kernel.map_fragment": _map}
