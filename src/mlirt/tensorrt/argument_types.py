"""Arguments of another type are refused where they are given, not where they are used."""

from __future__ import annotations


def expect(where: str, given: object, kind: type) -> None:
    """Raise `TypeError` unless an argument is of a type; `where` is the call and the argument."""
    if not isinstance(given, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise TypeError(f"{where}: expected {article} {kind.__name__}, got {given!r}")
