"""What flagged words and dot products mean: all blocks of a launch run in step, so what is awaited has been sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.dot_product import CHAINS, DotProductOp
from mlirt.dialects.kernel.flagged_word import ReceiveFlaggedOp, SendFlaggedOp
from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.interpreter_memory import Buffer, KernelError, OutOfBoundsError
from mlirt.dialects.scalar_semantics import scalar_dtype

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class NeverSentError(KernelError):
    """A thread waits for a word that nobody has sent, or that has been overwritten."""


def _halves(buffer: Buffer) -> tuple[Array, int]:
    """The words as unsigned integers, and how many bits half of one has."""
    size = buffer.data.dtype.itemsize
    return buffer.data.view(f"uint{8 * size}"), 4 * size


def _send_flagged(machine: Machine, lanes: Lanes, op: SendFlaggedOp) -> None:
    import numpy as np

    buffer = lanes.buffer(op.words)
    _, bits = _halves(buffer)
    active = np.flatnonzero(lanes.active)
    values = np.ascontiguousarray(lanes.per_lane(op.value)[active]).view(f"uint{bits}").astype(np.uint64)
    flags = lanes.per_lane(op.flag)[active].astype(np.uint64) & np.uint64((1 << bits) - 1)
    words = (flags << np.uint64(bits) | values).astype(f"uint{2 * bits}").view(buffer.data.dtype)
    buffer.write(lanes.access(lanes.per_lane(op.index)[active], active, machine.where(op)), words)


def _receive_flagged(machine: Machine, lanes: Lanes, op: ReceiveFlaggedOp) -> None:
    import numpy as np

    buffer, count = lanes.buffer(op.words), op.count.value.data
    _, bits = _halves(buffer)
    dtype = scalar_dtype(fragment(op.result).get_element_type())
    result = np.zeros((lanes.count, length(op.result)), dtype)
    active = np.flatnonzero(lanes.active)
    flags = lanes.per_lane(op.flag)[active].astype(np.uint64) & np.uint64((1 << bits) - 1)
    for number, index in enumerate(op.indices):
        first = lanes.per_lane(index)[active]
        if (first % count).any():
            raise OutOfBoundsError(f"{machine.where(op)}: words are not aligned to {count} of them")
        at = (first[:, None] + np.arange(count)).reshape(-1)
        read = buffer.read(lanes.access(at, np.repeat(active, count), machine.where(op)))
        words = read.view(f"uint{2 * bits}").reshape(-1, count).astype(np.uint64)
        late = words >> np.uint64(bits) != flags[:, None]
        if late.any():
            lane = int(late.any(axis=1).argmax())
            word = f"%{buffer.name}[{first[lane] + int(late[lane].argmax())}]"
            raise NeverSentError(f"{machine.where(op)}: nobody has sent {word} with the flag {flags[lane]}")
        result[active, number * count : (number + 1) * count] = words.astype(f"uint{bits}").view(dtype)
    lanes[op.result] = result


def _dot_product(machine: Machine, lanes: Lanes, op: DotProductOp) -> None:
    products = lanes.array(op.left) * lanes.array(op.right)
    lanes[op.result] = products.reshape(len(products), -1, CHAINS).sum(axis=1).sum(axis=1)


RULES = {
    "kernel.send_flagged": _send_flagged,
    "kernel.receive_flagged": _receive_flagged,
    "kernel.dot_product": _dot_product,
}
