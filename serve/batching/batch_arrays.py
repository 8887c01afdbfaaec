"""Arrays of several requests as one batch, and the rows of a batch's outputs for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from mlirt.errors import PlanError
from mlirt.runtime.joined_arrays import JoinedArrays
from mlirt.serve.batching.request import Array, Outputs

Memory = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]
"""Gives an uninitialised array of a shape and a type."""


def joined(
    feeds: Sequence[Mapping[str, Array]], rows: int, padded: int, memory: Memory | None = np.empty
) -> Mapping[str, Array]:
    """All rows in order; further ones, up to `padded`, repeat the last one. They lie in arrays of the `memory`.

    Without a memory, for what joins them itself, they are `JoinedArrays`.
    """
    if len(feeds) == 1 and rows == padded:
        return feeds[0]
    found: dict[str, Array] = {}
    for name, first in feeds[0].items():
        if memory is None:
            parts = [one[name] for one in feeds]
            found[name] = cast("Array", JoinedArrays([*parts, *[parts[-1][-1:]] * (padded - rows)]))
            continue
        batch = memory((padded, *first.shape[1:]), first.dtype)
        np.concatenate([one[name] for one in feeds], out=batch[:rows])
        batch[rows:] = batch[rows - 1 : rows]
        found[name] = batch
    return found


def split(outputs: Mapping[str, Array], rows: Sequence[int], padded: int) -> Iterator[Outputs]:
    """The outputs of each request, in order. An answer owns its arrays: it keeps no others' rows in memory."""
    for name, array in outputs.items():
        if array.shape[:1] != (padded,):
            raise PlanError(f"output {name!r} has shape {list(array.shape)} for a batch of {padded} rows")
    if len(rows) == 1 and rows[0] == padded:
        yield dict(outputs)
        return
    start = 0
    for count in rows:
        yield {name: array[start : start + count].copy() for name, array in outputs.items()}
        start += count
