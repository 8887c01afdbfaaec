"""The programs that a context keeps for shapes that come again: by bytes, the least recently used is evicted first."""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar, cast

from mlirt.errors import InvalidInputError
from mlirt.runtime.device import Program, Session

T = TypeVar("T")
_USUAL_MEBIBYTES = 64.0
_VARIABLE = "MLIRT_SHAPE_CACHE_MB"


def shape_cache_bytes(shape_cache_mb: float | None = None) -> int:
    """The bytes that programs of a context may take: `shape_cache_mb` MiB, else MLIRT_SHAPE_CACHE_MB, else 64 MiB."""
    wanted = os.environ.get(_VARIABLE, "") if shape_cache_mb is None else shape_cache_mb
    try:
        mebibytes = float(wanted if wanted != "" else _USUAL_MEBIBYTES)
    except ValueError:
        mebibytes = math.nan
    if not 0 <= mebibytes < math.inf:
        source = _VARIABLE if shape_cache_mb is None else "shape_cache_mb"
        raise InvalidInputError(f"{source} is {wanted!r}; expected MiB, 0 to keep the program of the last shapes alone")
    return int(mebibytes * (1 << 20))


@dataclass(frozen=True)
class ShapeCacheUse:
    """What the programs of a context take, and what they may take."""

    programs: int
    bytes: int
    limit: int


class ProgramCache:
    """Programs of one session by what they were made for. The one that was put last stays, whatever it takes."""

    def __init__(self, session: Session, limit: int) -> None:
        self._session = session
        self._limit = limit
        self._programs: OrderedDict[Hashable, tuple[Program, int]] = OrderedDict()
        self._companions: dict[Hashable, object] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> Program | None:
        """The program, which then is the most recently used one; None where there is none."""
        found = self._programs.get(key)
        if found is None:
            return None
        if len(self._programs) > 1:
            self._programs.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, program: Program) -> None:
        """Keep a program, and let the least recently used ones go as long as all take more than they may."""
        if key in self._programs:
            self._bytes -= self._programs.pop(key)[1]
            self._companions.pop(key, None)
        held = program.held_bytes
        self._programs[key] = program, held
        self._bytes += held
        while len(self._programs) > 1 and self._bytes + self._session.outgrown_bytes() > self._limit:
            gone, (_, size) = self._programs.popitem(last=False)
            self._companions.pop(gone, None)
            self._bytes -= size

    def companion(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes for a program that is kept, once; it is kept as long."""
        if key not in self._companions:
            made = make()
            if key not in self._programs:
                return made
            self._companions[key] = made
        return cast("T", self._companions[key])

    def kept_companion(self, key: Hashable) -> object | None:
        """What has been made for a program that is kept; its use is not noted."""
        return self._companions.get(key)

    def clear(self) -> None:
        """Keep none."""
        self._programs.clear()
        self._companions.clear()
        self._bytes = 0

    @property
    def use(self) -> ShapeCacheUse:
        """How many programs there are, and their bytes."""
        return ShapeCacheUse(len(self._programs), self._bytes + self._session.outgrown_bytes(), self._limit)
