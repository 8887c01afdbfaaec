"""Attributes compute their hashes once: they are made of others, and never change."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute

_HASH = "_mlirt_hash"


def remember_hashes(base: type[Attribute]) -> None:
    """Let the attributes of all classes that there are by now keep their hashes."""
    for one in base.__subclasses__():
        remember_hash(one)
        remember_hashes(one)


def remember_hash(of: type[Attribute]) -> None:
    """Let the attributes of a class keep their hashes."""
    plain = vars(of).get("__hash__")
    if plain is not None and not hasattr(plain, _HASH):
        setattr(of, "__hash__", _remembering(plain))


def _remembering(plain: Callable[[Attribute], int]) -> Callable[[Attribute], int]:
    def remembered(self: Attribute) -> int:
        known = vars(self)
        try:
            return known[_HASH]
        except KeyError:
            found = known[_HASH] = plain(self)
            return found

    setattr(remembered, _HASH, True)
    return remembered
