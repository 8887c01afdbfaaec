"""Names of layers: where an op came from in the trained network."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, NameLoc, NoneAttr, StringAttr, UnknownLoc
from xdsl.ir import Operation


@lru_cache(maxsize=1 << 16)
def named(name: str) -> LocationAttr:
    """The location of a layer called `name`."""
    return NameLoc(StringAttr(name), NoneAttr())


def names(location: LocationAttr) -> list[str]:
    """The layer names that a location joins, in order, each once."""
    known = vars(location).get(_NAMES)  # each op that is made of others asks those for theirs
    if known is None:
        known = vars(location)[_NAMES] = tuple(_names(location))
    return list(known)


_NAMES = "_names"
"""Where a location keeps its names once they were asked for."""


def _names(location: LocationAttr) -> list[str]:
    if isinstance(location, NameLoc):
        return [location.desc.data]
    if isinstance(location, FusedLoc):
        parts = cast("ArrayAttr[LocationAttr]", location.locations)
        return list(dict.fromkeys(name for part in parts for name in names(part)))
    return []


def name_of(op: Operation) -> str:
    """What messages call an op: its layer names joined by ` + `, else the name of the op itself."""
    return " + ".join(names(op.location)) or op.name


def fuse(*ops: Operation) -> LocationAttr:
    """The location of an op that takes the place of `ops`."""
    return fuse_locations(op.location for op in ops)


def fuse_locations(locations: Iterable[LocationAttr]) -> LocationAttr:
    """One location for several; unknown ones drop out."""
    joined = list(dict.fromkeys(name for location in locations for name in names(location)))
    if not joined:
        return UnknownLoc()
    if len(joined) == 1:
        return named(joined[0])
    return FusedLoc(ArrayAttr([named(name) for name in joined]), NoneAttr())
