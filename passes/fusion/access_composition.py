"""Composes accesses: which element of a producer's operand an iteration of the consumer needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.passes.fusion.view_composition import axis_groups


@lru_cache(maxsize=64)
def identity_access(rank: int) -> AccessAttr:
    """Iteration (d0, d1, ..) reads element (d0, d1, ..)."""
    return AccessAttr.of([iteration(axis) for axis in range(rank)])


@lru_cache(maxsize=8192)
def compose(producer: AccessAttr, consumer: AccessAttr) -> AccessAttr:
    """The access of the consumer to an operand that the producer reads with `producer`.

    `consumer` is how the consumer reads the producer's result, whose dimensions are the producer's iteration space.
    """
    at = consumer.indices()
    if consumer == identity_access(len(at)):
        return producer
    env = {f"d{axis}": index for axis, index in enumerate(at)}
    return producer.substituted(env)


@lru_cache(maxsize=8192)
def iteration_dims(access: AccessAttr) -> frozenset[str]:
    """The iteration dimensions that an access depends on, as `d0`, `d1`, .. (network symbols may be among them)."""
    return frozenset(name for index in access.indices() for name in symbols(index))


def repeats(access: AccessAttr, space: Sequence[Dim]) -> bool:
    """Whether several iterations of the space read the same element."""
    used = iteration_dims(access)
    return any(extent != 1 and f"d{axis}" not in used for axis, extent in enumerate(space))


@lru_cache(maxsize=8192)
def keeps_rows(access: AccessAttr) -> bool:
    """Whether neighbours in the iteration read neighbours in memory: a slice does, a transpose does not."""
    indices = access.indices()
    if not indices or isinstance(indices[-1], int):
        return False
    names = sorted(symbols(indices[-1]))
    last = [name for name in names if name[0] == "d" and name[1:].isdigit()]
    if len(last) != 1 or symbols(indices[-1] - iteration(int(last[0][1:]))) & {last[0]}:
        return False
    return all(last[0] not in symbols(index) for index in indices[:-1])


def unit_view(before: Sequence[Dim], after: Sequence[Dim]) -> dict[str, Dim] | None:
    """The iteration over `after` in terms of that over `before`, where a view only adds or drops axes of length 1."""
    kept = [axis for axis, length in enumerate(before) if length != 1]
    if [before[axis] for axis in kept] != [length for length in after if length != 1]:
        return None
    rest = iter(kept)
    return {f"d{axis}": 0 if length == 1 else iteration(next(rest)) for axis, length in enumerate(after)}


def joining_view(before: Sequence[Dim], after: Sequence[Dim]) -> dict[str, Dim] | None:
    """The iteration over `after` in terms of that over `before`, where a view joins axes, or adds or drops axes of
    length 1.
    """
    found: dict[str, Dim] = {}
    for olds, news in axis_groups(before, after):
        long = [axis for axis in news if after[axis] != 1]
        if len(long) > 1:
            return None
        place: Dim = 0
        for axis in olds:
            place = place * before[axis] + iteration(axis)
        found |= {f"d{axis}": place if axis in long else 0 for axis in news}
    return found if len(found) == len(after) else None
