"""Puts CHECK lines into a test: those of a function above it, in the place of those that were there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mlirt.tools.update_checks.functions import FUNCTION

NOTE = "// NOTE: rt-update-checks writes the CHECK lines of this file."
_SPLIT = re.compile(r"^// -----[ \t]*$")


def directive(prefixes: Sequence[str]) -> re.Pattern[str]:
    """What a line with nothing but a directive of these prefixes looks like."""
    any_prefix = "|".join(map(re.escape, prefixes))
    return re.compile(rf"^[ \t]*//[ \t]*(?:{any_prefix})(?:-[A-Z]+(?:-\d+)?|\{{LITERAL\}})*:")


def without_checks(text: str, prefixes: Sequence[str]) -> str:
    """A test without its CHECK lines and the note."""
    is_check = directive(prefixes)
    kept = [line for line in text.splitlines() if line != NOTE and not is_check.match(line)]
    return "".join(f"{line}\n" for line in kept)


def parts_of(text: str) -> list[str]:
    """The parts of a test between `// -----` lines; joined by those they are the test."""
    parts = [list[str]()]
    for line in text.splitlines():
        if _SPLIT.match(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return ["".join(f"{line}\n" for line in part) for part in parts]


def joined(parts: Sequence[str]) -> str:
    return "// -----\n".join(parts)


def with_checks(part: str, blocks: Mapping[str, Sequence[str]]) -> str:
    """A part of a test with a block of CHECK lines for each function of its output, in the order of the output.

    Each stands above its function. One of a function that the test does not have stands before the block behind it, or
    at the end; where the output has another order than the test, all stand above the first function.
    """
    lines = part.splitlines()
    places = {match["name"]: number for number, line in enumerate(lines) if (match := FUNCTION.match(line))}
    above = dict[int, list[str]]()
    waiting = list[str]()
    last = -1
    for name, block in blocks.items():
        waiting += block
        place = places.get(name)
        if place is None:
            continue
        if place <= last:
            return _all_above_first(lines, places, blocks)
        above[place] = waiting
        waiting, last = [], place
    if waiting and lines and lines[-1].strip() and places:
        waiting = ["", *waiting]
    out = list[str]()
    for number, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        out += [f"{indent}{check}" for check in above.get(number, [])]
        out.append(line)
    return "".join(f"{line}\n" for line in [*out, *waiting])


def _all_above_first(lines: Sequence[str], places: Mapping[str, int], blocks: Mapping[str, Sequence[str]]) -> str:
    first = min(places.values())
    checks = [line for block in blocks.values() for line in block]
    return "".join(f"{line}\n" for line in [*lines[:first], *checks, *lines[first:]])
