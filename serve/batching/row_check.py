"""Whether the rows of a network's outputs depend on their own rows of the inputs alone, tried with random inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mlirt.errors import MlirtError
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.runtime.random_inputs import random_input

if TYPE_CHECKING:
    from mlirt.serve.batching.batcher import Run
    from mlirt.serve.batching.request import Array
    from mlirt.serve.batching.signature import Signature

_USUAL_LENGTHS = (8, 32, 64, 224, 16, 128)
"""Tried in turn for dimensions that neither the network nor a profile has a number for."""


def rows_are_independent(run: Run, signature: Signature) -> bool | None:
    """Compare bits of a row whose neighbour is another one; None where the network could not be run.

    Two runs of the same shapes have the same bits, so any difference in the row that stayed is the neighbour's doing.
    """
    for length in _USUAL_LENGTHS:
        first, other = (_inputs(signature, length, seed) for seed in (1, 2))
        try:
            both = run({name: np.concatenate([array, other[name]]) for name, array in first.items()}, None)
            again = run({name: np.concatenate([array, array]) for name, array in first.items()}, None)
            swapped = run({name: np.concatenate([other[name], array]) for name, array in first.items()}, None)
        except MlirtError:
            continue
        size = sum(len(array) for array in first.values()) // max(1, len(first))
        return _equal(both, again, slice(0, size)) and _equal(swapped, again, slice(size, 2 * size))
    return None


def _inputs(signature: Signature, length: int, seed: int) -> dict[str, Array]:
    """Half a batch: as many rows as half of what the first profile has, at least one."""
    profile = signature.profiles[0] if signature.profiles else dict[str, ShapeRange]()
    low = max((found.minimum[0] for found in profile.values() if found.minimum), default=1)
    found: dict[str, Array] = {}
    for number, tensor in enumerate(signature.inputs):
        known = profile[tensor.name].optimum if tensor.name in profile else None
        if known is None:
            shape = tuple(dim if isinstance(dim, int) else length for dim in tensor.shape)
        else:
            shape = known
        found[tensor.name] = random_input(tensor.dtype, (max(1, (low + 1) // 2), *shape[1:]), 100 * seed + number)
    return found


def _equal(one: Mapping[str, Array], other: Mapping[str, Array], rows: slice) -> bool:
    return all(one[name][rows].tobytes() == other[name][rows].tobytes() for name in one)
