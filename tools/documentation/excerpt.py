"""Cuts a few ops or functions out of a long text and lays them out for reading: short constants, short lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from mlirt.errors import InvalidInputError

_WIDTH = 116
_LONG_CONSTANT = re.compile(r"dense<[^<>]{60,}>")
_OPEN, _CLOSED = ("{", "[", ":"), ("}", "]")


def excerpt(text: str, starts: Sequence[str]) -> str:
    """The ops whose first lines contain `starts`, each with its regions; a line of dots stands for what is left out.

    `start .. end` is an op up to its first line that contains `end`; a star in a start stands for any letters.
    """
    lines = text.splitlines()
    chosen: list[str] = []
    end = 0
    for wanted in starts:
        start, _, last = wanted.partition(" .. ")
        first = next((n for n in range(end, len(lines)) if _has(lines[n], start)), None)
        if first is None:
            raise InvalidInputError(f"no line of the text contains {start!r}")
        if chosen and first > end:
            chosen.append(_indent(lines[first]) + "...")
        end = _end(lines, first)
        if last:
            shown = next((n + 1 for n in range(first, end) if last in lines[n]), end)
            chosen += [*lines[first:shown], _indent(lines[shown - 1]) + "..."]
        else:
            chosen += "\n".join(lines[first:end]).rstrip().splitlines()
    cut = textwrap.dedent("\n".join(chosen).rstrip())
    return "\n".join(piece for line in cut.splitlines() for piece in wrap(_LONG_CONSTANT.sub("dense<...>", line)))


def _has(line: str, wanted: str) -> bool:
    return re.search(".*".join(map(re.escape, wanted.split("*"))), line) is not None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _end(lines: Sequence[str], first: int) -> int:
    """The line after an op (its regions end with a brace below its start) or after an indented block of Python."""
    indent = _indent(lines[first])
    opened = lines[first].endswith(_OPEN)
    for number in range(first + 1, len(lines) if opened else 0):
        line = lines[number]
        if line.strip() and len(_indent(line)) <= len(indent) and not line.lstrip().startswith("^"):
            closes = line.strip().startswith(_CLOSED)
            if closes and line.endswith("{"):
                continue
            return number + 1 if closes else number
    return len(lines) if opened else first + 1


def wrap(line: str) -> Iterator[str]:
    """Break a line where IR may be broken: before its types, else after the comma in the fewest brackets."""
    indent, depths = _indent(line), _depths(line)
    start, room = 0, _WIDTH
    while len(line) - start > room:
        place = _break(line, depths, start, start + room)
        if place is None:
            break
        yield _continued(line[start:place], indent, start)
        start, room = place, _WIDTH - len(indent) - 4
    yield _continued(line[start:], indent, start)


def _continued(piece: str, indent: str, start: int) -> str:
    return f"{indent}    {piece.strip()}" if start else piece.rstrip()


def _break(line: str, depths: Sequence[int | None], start: int, end: int) -> int | None:
    """The best place in the second half of a stretch."""
    best: tuple[bool, int, int] | None = None
    for place in range((start + end) // 2, end):
        depth = depths[place]
        types = depth == 0 and line.startswith((" -> ", " : "), place)
        if depth is not None and (types or line[place - 1 : place + 1] == ", "):
            best = max(best or (types, -depth, place), (types, -depth, place))
    return None if best is None else best[2]


def _depths(text: str) -> list[int | None]:
    """For each letter how many brackets are open before it; None inside of a string."""
    depth, inside = 0, False
    depths: list[int | None] = []
    for place, letter in enumerate(text):
        depths.append(None if inside else depth)
        if letter == '"':
            inside = not inside
        elif not inside and letter in "([{<":
            depth += 1
        elif not inside and (letter in ")]}" or (letter == ">" and text[place - 1] != "-")):
            depth -= 1
    return depths
