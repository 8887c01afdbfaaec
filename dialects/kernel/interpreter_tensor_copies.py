"""What copies from tensor maps bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.interpreter_memory import Buffer, OutOfBoundsError
from mlirt.dialects.kernel.tensor_copy import BOX_ALIGNMENT, GLOBAL_ALIGNMENT
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.kernel.transaction_barrier import barrier_of
from mlirt.dialects.layout import Swizzle

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter_instruction import Site
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

    return Swizzle.of_lines(type_.swizzle.data)(np.arange(type_.count) * itemsize) // itemsize


def as_tf32(values: Array) -> Array:
    """float32 rounded to the nearest number with 10 bits of mantissa, ties to even."""
    import numpy as np

    bits = np.ascontiguousarray(values).view(np.uint32)
    odd = bits >> np.uint32(13) & np.uint32(1)
    rounded = (bits + np.uint32(0xFFF) + odd & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


Places: TypeAlias = "Callable[[MappedTensor, TensorMapType, list[int], list[int]], tuple[Array, Array]]"


def start_copies(x: Any, site: Site, type_: TensorMapType, places: Places) -> None:
    """Let each lane start its copy; `places` says where elements of a box lie, and which are inside of the tensor."""
    import numpy as np

    memory, tensor = x.target.buffer, x.map
    size = memory.data.itemsize
    order = swizzled(type_, size)
    aligned = max(Swizzle.of_lines(type_.swizzle.data).period, BOX_ALIGNMENT)
    for row, lane in enumerate(site.active.tolist()):
        start = int(x.target_index[row])
        if start * size % aligned:
            raise OutOfBoundsError(f"{site.where}: element {start} is not aligned to {aligned} bytes")
        coordinates = [int(one[row]) for one in x.coordinates]
        if coordinates[-1] * size % GLOBAL_ALIGNMENT:
            raise OutOfBoundsError(
                f"{site.where}: a box that begins at {coordinates[-1]} of its innermost dimension is not aligned to "
                f"{GLOBAL_ALIGNMENT} bytes of memory"
            )
        index, inside = places(tensor, type_, coordinates, [int(one[row]) for one in getattr(x, "offsets", ())])
        data = np.zeros(type_.count, memory.data.dtype)
        at = np.full(int(inside.sum()), lane)
        read = tensor.buffer.read(site.lanes.access(index[inside], at, site.where))
        data[inside] = as_tf32(read) if type_.rounds else read
        target = memory.locate(site.lanes.access(start + order, np.full(type_.count, lane), site.where))
        barrier = barrier_of(site, x.barriers, int(x.barrier[row]), row)
        site.machine.stages.start(barrier, memory, target, data, site.where)


def box(tensor: MappedTensor, type_: TensorMapType, coordinates: list[int], offsets: list[int]) -> tuple[Array, Array]:
    import numpy as np

    index, inside = np.zeros(type_.lengths, np.int64), np.ones(type_.lengths, bool)
    for axis, (first, length) in enumerate(zip(coordinates, type_.lengths, strict=True)):
        shape = [-1 if axis == other else 1 for other in range(type_.rank)]
        along = (first + np.arange(length)).reshape(shape)
        index = index + along * tensor.steps[axis]
        inside = inside & (along >= 0) & (along < tensor.sizes[axis])
    return index.reshape(-1), inside.reshape(-1)


def window(
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
