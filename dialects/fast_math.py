"""Fast math: which rewritings that change results a build permits, by name."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from mlirt.errors import InvalidInputError

RIGHTS = MappingProxyType(
    {
        "reassociate": "sums and products in another order; constant factors and terms move through linear layers",
        "accurate": "a formula with a smaller error: log(softmax(x)) as one function",
        "reciprocal": "x / c as x times the rounded 1 / c",
        "finite": "no number is infinite or not-a-number: x - x is 0, a sum of such differences too",
        "functions": "inverse functions cancel, also where what is between them overflows: log(exp(x)) is x",
    }
)
"""What may be granted, and what it permits."""
DEFAULT = ("accurate", "reassociate")
_GROUPS = {"none": (), "default": DEFAULT, "all": tuple(RIGHTS)}


def read_rights(given: str | Iterable[str]) -> tuple[str, ...]:
    """The rights of a list such as `reassociate,finite`, sorted; `none`, `default` and `all` stand for several.

    Raises `InvalidInputError` for another word.
    """
    words = given.split(",") if isinstance(given, str) else list(given)
    found: set[str] = set()
    for word in (word.strip() for word in words):
        if word not in RIGHTS and word not in _GROUPS:
            from difflib import get_close_matches  # for mistakes alone

            close = get_close_matches(word, [*RIGHTS, *_GROUPS], 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidInputError(
                f"there is no fast math {word!r}: expected none, default, all, or some of {', '.join(RIGHTS)}{hint}"
            )
        found.update(_GROUPS.get(word, (word,)))
    return tuple(sorted(found))
