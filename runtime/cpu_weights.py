"""Where the weights of a plan lie on a CPU: in place, moved to aligned memory, guarded, or in memory of a caller."""

from collections.abc import Mapping

import numpy as np

from mlirt.errors import OutOfMemoryError
from mlirt.runtime.guarded_memory import GuardedBlock, Side
from mlirt.runtime.host_memory import ALIGNMENT, HostBlock, address_of
from mlirt.runtime.lent_memory import AllocatedBlock, Allocator
from mlirt.runtime.manifest import Manifest


def readable_weights(
    manifest: Manifest, weights: Mapping[str, np.ndarray], guarded: Side | None
) -> dict[int, np.ndarray]:
    """The bytes of each weight buffer, where kernels read them."""
    if guarded is None:
        return _resident_weights(manifest, weights)
    owners = {i: b for i, b in enumerate(manifest.buffers) if b.kind == "weight" and b.view_of is None}
    whole = {i: np.ascontiguousarray(weights[str(b.weight)]).reshape(-1).view(np.uint8) for i, b in owners.items()}
    # What a buffer is larger in the file than in the manifest, no kernel may read.
    declared = {i: whole[i][: b.size] for i, b in owners.items() if isinstance(b.size, int)}
    return {i: GuardedBlock(given.nbytes, guarded).holding(given) for i, given in declared.items()}


def _resident_weights(manifest: Manifest, weights: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    """The bytes of each weight buffer at an aligned address: in place (as in a mapped file) or moved."""
    resident: dict[int, np.ndarray] = {}
    moving: list[int] = []
    for i, buffer in enumerate(manifest.buffers):
        if buffer.kind == "weight" and buffer.view_of is None and buffer.weight is not None:
            resident[i] = np.ascontiguousarray(weights[buffer.weight]).reshape(-1).view(np.uint8)
            if address_of(resident[i]) % max(buffer.align, ALIGNMENT):
                moving.append(i)
    starts: list[int] = []
    end = 0
    for i in moving:
        align = max(manifest.buffers[i].align, ALIGNMENT)
        starts.append(-(-end // align) * align)
        end = starts[-1] + resident[i].nbytes
    block = HostBlock(end)
    for i, start in zip(moving, starts, strict=True):
        moved = block.bytes_at(start, resident[i].nbytes)
        moved[...] = resident[i]
        resident[i] = moved
    return resident


def move_weights(weights: dict[int, np.ndarray], manifest: Manifest, allocator: Allocator) -> AllocatedBlock | None:
    """Copy the weights to memory of an allocator; nothing where there are none."""
    starts: dict[int, int] = {}
    end = 0
    for i, array in weights.items():
        align = max(manifest.buffers[i].align, ALIGNMENT)
        starts[i] = -(-end // align) * align
        end = starts[i] + array.nbytes
    if not end:
        return None
    most = max(max(manifest.buffers[i].align, ALIGNMENT) for i in weights)
    try:
        block = AllocatedBlock(allocator, end + most)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"Allocation failed during deserialization of weights. {error}") from error
    first = -block.address % most
    for i, start in starts.items():
        moved = block.bytes_at(first + start, weights[i].nbytes)
        moved[...] = weights[i]
        weights[i] = moved
    return block
