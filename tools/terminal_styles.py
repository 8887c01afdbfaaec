"""Colours of a terminal: where there is one, and nobody has set NO_COLOR (no-color.org) or calls it dumb."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

_CODES: Mapping[str, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


def styled(text: str, style: str, stream: TextIO) -> str:
    """The text as it is to be written to a stream: in a style (bold, dim, red, green, yellow), or as it is."""
    if not style or not has_colours(stream):
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, to a user who wants them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
