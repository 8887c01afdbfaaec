"""What tensor maps, the copies from them and the barriers that count these mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.interpreter_memory import (
    Buffer,
    OutOfBoundsError,
    RaceError,
    SharedBuffer,
)
from mlirt.dialects.kernel.interpreter_stages import Mbarrier
from mlirt.dialects.kernel.tensor_copy import BOX_ALIGNMENT, SWIZZLE_LINES, LoadBoxOp, LoadWindowOp, map_type
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.kernel.transaction_barrier import (
    MbarrierArriveOp,
    MbarrierExpectOp,
    MbarrierFenceOp,
    MbarrierInitOp,
    MbarrierWaitOp,
)

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine
    from mlirt.dialects.plan.tensor_map import Walk

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class MappedTensor:
    """The value of a tensor map: memory, and sizes and steps in elements, outermost first."""

    buffer: Buffer
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    walk: Walk | None


def swizzled(type_: TensorMapType, itemsize: int) -> Array:
    """Where the elements of a box lie after its start, in elements."""
    import numpy as np

    offset = np.arange(type_.count) * itemsize
    if type_.swizzle.data:
        offset = swizzle(offset, type_.swizzle.data)
    return offset // itemsize


def swizzle(offset: Array, line: int) -> Array:
    """Exchange the 16-byte pieces of lines; offsets in bytes from a 1024-byte boundary."""
    return offset ^ (((offset >> 7) & (line // 16 - 1)) << 4)


def as_tf32(values: Array) -> Array:
    """float32 rounded to the nearest number with 10 bits of mantissa, ties to even."""
    import numpy as np

    bits = np.ascontiguousarray(values).view(np.uint32)
    odd = bits >> np.uint32(13) & np.uint32(1)
    rounded = (bits + np.uint32(0xFFF) + odd & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def _mapped(lanes: Lanes, name: SSAValue) -> MappedTensor:
    value = lanes.get(name)
    assert isinstance(value, MappedTensor)
    return value


def _barrier_of(machine: Machine, lanes: Lanes, op: Any, barriers: SSAValue, index: SSAValue, lane: int) -> Mbarrier:
    """The barrier that an active lane names; others than who made it need a barrier of threads between."""
    memory = lanes.buffer(barriers)
    assert isinstance(memory, SharedBuffer)
    where, block = machine.where(op), int(lanes.block[lane])
    found = machine.stages.barrier(memory, block, int(lanes.per_lane(index)[lane]), where)
    thread, epoch = found.made_by
    if thread != int(lanes.thread[lane]) and epoch == int(lanes.epochs.of(lanes.block[lane : lane + 1])[0]):
        raise RaceError(f"{where}: there is no barrier between the initialisation of an mbarrier and its use")
    return found


def _active(lanes: Lanes) -> list[int]:
    import numpy as np

    return np.flatnonzero(lanes.active).tolist()


def _init(machine: Machine, lanes: Lanes, op: MbarrierInitOp) -> None:
    memory = lanes.buffer(op.barriers)
    assert isinstance(memory, SharedBuffer)
    for lane in _active(lanes):
        block, index = int(lanes.block[lane]), int(lanes.per_lane(op.index)[lane])
        if not 0 <= index < memory.extent:
            raise OutOfBoundsError(f"{machine.where(op)}: %{memory.name}[{index}] is out of bounds")
        epoch = int(lanes.epochs.of(lanes.block[lane : lane + 1])[0])
        made_by = int(lanes.thread[lane]), epoch
        machine.stages.barriers[memory, block, index] = Mbarrier(op.arrivals.value.data, made_by)


def _fence(machine: Machine, lanes: Lanes, op: MbarrierFenceOp) -> None:
    """Here initialisations are known at once."""


def _arrive(machine: Machine, lanes: Lanes, op: MbarrierArriveOp | MbarrierExpectOp) -> None:
    bytes_ = op.bytes.value.data if isinstance(op, MbarrierExpectOp) else 0
    for lane in _active(lanes):
        _barrier_of(machine, lanes, op, op.barriers, op.index, lane).arrive(machine.where(op), bytes_)
    if isinstance(op, MbarrierArriveOp):
        machine.turns.give_way()


def _wait(machine: Machine, lanes: Lanes, op: MbarrierWaitOp) -> None:
    parity = lanes.per_lane(op.parity)
    waited: dict[tuple[int, int], Mbarrier] = {}
    for lane in _active(lanes):
        found = _barrier_of(machine, lanes, op, op.barriers, op.index, lane)
        waited[id(found), int(parity[lane])] = found
    pairs = [(found, wanted) for (_, wanted), found in waited.items()]

    def open_() -> list[Mbarrier]:
        return [found for found, wanted in pairs if not found.has_ended(wanted)]

    machine.turns.until(lambda: not open_(), lambda: f"{machine.where(op)}: {open_()[0].missing()}")
    for found, _ in pairs:
        machine.stages.see(found)


Places: TypeAlias = "Callable[[MappedTensor, TensorMapType, list[int], list[int]], tuple[Array, Array]]"


def _copy(machine: Machine, lanes: Lanes, op: LoadBoxOp | LoadWindowOp, places: Places) -> None:
    """`places` gives the index in memory of each element of a box, and whether it is inside of the tensor."""
    import numpy as np

    type_, tensor, where = map_type(op.map), _mapped(lanes, op.map), machine.where(op)
    memory = lanes.buffer(op.target)
    assert isinstance(memory, SharedBuffer)
    size = memory.data.itemsize
    order = swizzled(type_, size)
    aligned = SWIZZLE_LINES * type_.swizzle.data if type_.swizzle.data else BOX_ALIGNMENT
    aligned = max(aligned, BOX_ALIGNMENT)
    for lane in _active(lanes):
        start = int(lanes.per_lane(op.target_index)[lane])
        if start * size % aligned:
            raise OutOfBoundsError(f"{where}: element {start} is not aligned to {aligned} bytes")
        coordinates = [int(lanes.per_lane(one)[lane]) for one in op.coordinates]
        moved = op.offsets if isinstance(op, LoadWindowOp) else ()
        offsets = [int(lanes.per_lane(one)[lane]) for one in moved]
        index, inside = places(tensor, type_, coordinates, offsets)
        data = np.zeros(type_.count, memory.data.dtype)
        at = np.full(int(inside.sum()), lane)
        read = tensor.buffer.read(lanes.access(index[inside], at, where))
        data[inside] = as_tf32(read) if type_.rounds else read
        target = memory.locate(lanes.access(start + order, np.full(type_.count, lane), where))
        barrier = _barrier_of(machine, lanes, op, op.barriers, op.barrier, lane)
        machine.stages.start(barrier, memory, target, data, where)


def _load_box(machine: Machine, lanes: Lanes, op: LoadBoxOp) -> None:
    _copy(machine, lanes, op, _box)


def _box(tensor: MappedTensor, type_: TensorMapType, coordinates: list[int], offsets: list[int]) -> tuple[Array, Array]:
    import numpy as np

    index, inside = np.zeros(type_.lengths, np.int64), np.ones(type_.lengths, bool)
    for axis, (first, length) in enumerate(zip(coordinates, type_.lengths, strict=True)):
        shape = [-1 if axis == other else 1 for other in range(type_.rank)]
        along = (first + np.arange(length)).reshape(shape)
        index = index + along * tensor.steps[axis]
        inside = inside & (along >= 0) & (along < tensor.sizes[axis])
    return index.reshape(-1), inside.reshape(-1)


def _load_window(machine: Machine, lanes: Lanes, op: LoadWindowOp) -> None:
    _copy(machine, lanes, op, _window)


def _window(
    tensor: MappedTensor, type_: TensorMapType, coordinates: list[int], offsets: list[int]
) -> tuple[Array, Array]:
    import numpy as np

    assert tensor.walk is not None
    pixels, channels = type_.lengths
    image, *at, channel = coordinates
    spatial = tensor.sizes[1:-1]
    lower, upper, stride = tensor.walk.lower, tensor.walk.upper, tensor.walk.stride
    index, inside = np.zeros((pixels, channels), np.int64), np.zeros((pixels, channels), bool)
    along = channel + np.arange(channels)
    for pixel in range(pixels):
        here = [position + offset for position, offset in zip(at, offsets, strict=True)]
        fits = image < tensor.sizes[0] and all(0 <= p < size for p, size in zip(here, spatial, strict=True))
        start = sum(p * step for p, step in zip([image, *here], tensor.steps[:-1], strict=True))
        index[pixel] = start + along * tensor.steps[-1]
        inside[pixel] = fits & (along >= 0) & (along < tensor.sizes[-1])
        for axis in reversed(range(len(at))):
            at[axis] += stride[axis]
            if at[axis] < spatial[axis] + upper[axis]:
                break
            at[axis] = lower[axis]
        else:
            image += 1
    return index.reshape(-1), inside.reshape(-1)


RULES = {
    "kernel.mbarrier_init": _init,
    "kernel.mbarrier_fence": _fence,
    "kernel.mbarrier_expect": _arrive,
    "kernel.mbarrier_arrive": _arrive,
    "kernel.mbarrier_wait": _wait,
    "kernel.load_box": _load_box,
    "kernel.load_window": _load_window,
}
