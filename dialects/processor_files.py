"""Reads what code for a processor may use from the files of `dialects/processors/`, one for each architecture.

A device (`dialects/devices/`) says how fast things are, a processor what there is. A processor that is `like` another
one has what that has, but for what its own table says; it is no level by that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from mlirt.errors import InvalidInputError
from mlirt.systems import SYSTEMS, triple_of

HOST = "host"
"""The name of the machine that builds, whatever it is."""
_LISTS = frozenset({"features", "optional", "special"})
_HERE = Path(__file__).parent / "processors"


@dataclass(frozen=True)
class Processor:
    """A processor or a level of several: its instructions, vectors, and the device whose costs are nearest.

    All code may use `features`, kernels that are made for them `special` ones too; those that some processors of a
    level have, and kernels are made for, are `optional`. All are LLVM's names. `baseline` is LLVM's name of the least
    processor of the architecture.
    """

    name: str
    full_name: str
    architecture: str
    baseline: str
    vector_bits: int
    features: tuple[str, ...]
    device: str
    optional: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    is_level: bool = False

    def triple(self, system: str) -> str:
        """LLVM's name of a machine with this processor and an operating system."""
        return triple_of(self.architecture, system)


def processor_names() -> tuple[str, ...]:
    """What a processor can be called besides `host`, family by family."""
    return tuple(_processors())


def read_processor(name: str) -> Processor:
    """The processor of a name; raises `InvalidInputError` that lists the names for another one."""
    found = _processors().get(name)
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(name, (HOST, *processor_names()), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInputError(
            f"there is no processor {name!r}: expected one of {', '.join((HOST, *processor_names()))}{hint}"
        )
    return found


def levels(architecture: str) -> tuple[Processor, ...]:
    """The levels of an architecture, the least first; none for one that no file is about."""
    return tuple(one for one in _processors().values() if one.architecture == architecture and one.is_level)


def check_system(name: str) -> None:
    """Raise `InvalidInputError` that lists the names for an operating system that no code is made for."""
    if name not in (HOST, *SYSTEMS):
        raise InvalidInputError(
            f"there is no operating system {name!r} to build for: expected one of {', '.join((HOST, *SYSTEMS))}"
        )


@cache
def _processors() -> dict[str, Processor]:
    import tomllib

    found: dict[str, Processor] = {}
    for path in sorted(_HERE.glob("*.toml"), reverse=True):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        family = {"architecture": table["architecture"], "baseline": table["baseline"]}
        rows = cast("dict[str, dict[str, Any]]", table["processors"])
        found |= {name: Processor(name=name, **family, **_resolved(name, rows)) for name in rows}
    return found


def _resolved(name: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The fields of a row, with those of the one that it is like."""
    own: dict[str, Any] = dict(rows[name])
    for field in _LISTS.intersection(own):
        own[field] = tuple(own[field])
    like = own.pop("like", None)
    return own if like is None else {**_resolved(like, rows), "is_level": False, **own}


__all__ = ["HOST", "SYSTEMS", "Processor", "check_system", "levels", "processor_names", "read_processor"]
