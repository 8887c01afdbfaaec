"""Tests of bad input: compares what a tool says with `// expected-error@+1 {{...}}` annotations, as MLIR does.

`@+N` and `@-N` count lines from the annotation, `@above` and `@below` mean the next line that holds no annotation,
`@unknown` a complaint without a line. The text is looked for inside the message; in `expected-error-re` what stands in
an inner `{{...}}` is a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlirt.tools.diagnostic import Diagnostic

_ANNOTATION = re.compile(
    r"//.*?expected-(?P<severity>error|warning|note|remark)(?P<re>-re)?\s*(?P<at>@([+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}"
)
_MALFORMED = re.compile(r"//.*?expected-(error|warning|note|remark)")


@dataclass(frozen=True)
class Expectation:
    """One annotation: what should be said of which line. `line` is None for a complaint without a place."""

    annotation_line: int
    line: int | None
    severity: str
    pattern: re.Pattern[str]
    text: str

    def matches(self, diagnostic: Diagnostic) -> bool:
        line = None if diagnostic.position is None else diagnostic.position.line
        return (
            line == self.line
            and diagnostic.severity == self.severity
            and self.pattern.search(diagnostic.message) is not None
        )


def expectations(text: str) -> Iterator[Expectation]:
    """The annotations of a file or chunk; raises `ValueError` for one that cannot be read."""
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        match = _ANNOTATION.search(line)
        if match is not None:
            pattern = re.compile(_pattern(match["text"], match["re"] is not None))
            yield Expectation(
                number, _target(match["at"] or "", number, lines), match["severity"], pattern, match["text"]
            )
        elif _MALFORMED.search(line):
            raise ValueError(f"line {number}: cannot read this annotation: expected // expected-error@+1 {{{{text}}}}")


def _pattern(text: str, has_expressions: bool) -> str:
    if not has_expressions:
        return re.escape(text)
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(f"(?:{part})" if index % 2 else re.escape(part) for index, part in enumerate(parts))


def _target(at: str, number: int, lines: list[str]) -> int | None:
    match at.removeprefix("@"):
        case "unknown":
            return None
        case "":
            return number
        case "above":
            return _next_plain_line(number, lines, -1)
        case "below":
            return _next_plain_line(number, lines, 1)
        case offset:
            return number + int(offset)


def _next_plain_line(number: int, lines: list[str], step: int) -> int:
    number += step
    while 1 <= number <= len(lines) and _ANNOTATION.search(lines[number - 1]):
        number += step
    return number


def mismatches(text: str, diagnostics: Iterable[Diagnostic], file: str) -> list[str]:
    """One line for each complaint that nobody expected, and for each expectation that nothing fulfilled."""
    try:
        open_expectations = list(expectations(text))
    except ValueError as error:
        return [f"{file}: error: {error}"]
    problems: list[str] = []
    for diagnostic in diagnostics:
        met = next((expected for expected in open_expectations if expected.matches(diagnostic)), None)
        if met is None:
            problems.append(
                f"{diagnostic.position or file}: error: unexpected {diagnostic.severity}: {diagnostic.message}"
            )
        else:
            open_expectations.remove(met)
    for expected in open_expectations:
        problems.append(
            f"{file}:{expected.annotation_line}:1: error: "
            f'expected {expected.severity} "{expected.text}" was not produced'
        )
    return problems
