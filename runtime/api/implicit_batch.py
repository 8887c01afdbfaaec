"""What a plan says of a network that was built with an implicit batch (tensorrt-features.md#2.17)."""

from __future__ import annotations

from mlirt.errors import PlanError
from mlirt.runtime.manifest import Manifest

IMPLICIT_BATCH = "implicit_batch"
"""The field of a plan's `info` with the largest batch."""


def largest_batch(manifest: Manifest) -> int | None:
    """The largest batch of a run; None where the batch is among the dimensions of the tensors."""
    noted = manifest.info.get(IMPLICIT_BATCH)
    if noted is None:
        return None
    if not isinstance(noted, int) or noted < 1 or not all(one.shape for one in (*manifest.inputs, *manifest.outputs)):
        raise PlanError(f"plan manifest: info.{IMPLICIT_BATCH}: expected a batch that all tensors have, got {noted!r}")
    return noted
