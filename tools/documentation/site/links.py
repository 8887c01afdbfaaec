"""Finds the links of a page of Markdown outside of its code, and writes them anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FENCE = r"^(?P<fence>```+)[^\n]*\n.*?^(?P=fence)[ \t]*$"
_PIECES = re.compile(rf"{_FENCE}|`[^`\n]*`|\]\((?P<link>[^)\s]+)\)", re.MULTILINE | re.DOTALL)
_OUTSIDE = ("http://", "https://", "mailto:")


def with_links(text: str, change: Callable[[str], str]) -> str:
    """The page with what `change` makes of each link within the repository, anchors included."""

    def changed(found: re.Match[str]) -> str:
        link = found["link"]
        return found[0] if link is None or link.startswith(_OUTSIDE) else f"]({change(link)})"

    return _PIECES.sub(changed, text)


def links_of(text: str) -> Iterator[str]:
    """The links within the repository."""
    found: list[str] = []

    def note(link: str) -> str:
        found.append(link)
        return link

    with_links(text, note)
    yield from found
