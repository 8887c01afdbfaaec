"""The memory that a context of an engine needs for what lies between its inputs and outputs
(tensorrt-features.md#13.14, 18.3).
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.runtime.api.engine_tensors import EngineTensor, engine_tensors
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.runtime.shape_binding import bind_shapes


def largest_arena(manifest: Manifest) -> int:
    """Bytes for the largest shapes of the profiles; dimensions that a run decides count as 1 where there is none."""
    tensors = engine_tensors(manifest)
    profiles = manifest.profiles or ({},)
    largest = [[_largest(profile, one, tensors) for one in manifest.given_inputs] for profile in profiles]
    return max(bind_shapes(manifest, shapes).arena_bytes for shapes in largest)


def _largest(profile: Mapping[str, ShapeRange], tensor: Tensor, tensors: Mapping[str, EngineTensor]) -> tuple[int, ...]:
    found = profile.get(tensor.name)
    if found is not None:
        return found.maximum
    own = tensors[tensor.name]
    return tuple(1 if length < 0 else length for length in own.stored_shape(own.shape))
