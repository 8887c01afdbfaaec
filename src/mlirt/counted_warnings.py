"""Warnings of a build, counted: what is kept of a build that warned would be silent when it is taken again."""

from __future__ import annotations

import warnings

_counts = {"warnings": 0}


def warn(text: str, category: type[Warning] = UserWarning, stacklevel: int = 1) -> None:
    """As `warnings.warn`."""
    _counts["warnings"] += 1  # two threads at once count as one, which is as good for who compares
    warnings.warn(text, category, stacklevel=stacklevel + 1)


def warnings_so_far() -> int:
    """How many there have been in this process, also those that are not shown."""
    return _counts["warnings"]
