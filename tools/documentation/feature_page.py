"""docs/tensorrt-features.md: TensorRT's features, whether they hold here, and the tests that cite each of them.

The rows are written by hand. This module fills in what follows from the repository: the tests of a row are those whose
text has its number, as in `(tensorrt-features.md#1.13a to 1.13d)`, or in the name of a function, as in
`test_scales_9_10()`; a number without its letter, as 1.13, stands for all rows that begin so. The table of counts
follows from the rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PAGE = "docs/tensorrt-features.md"
ANSWERS = ("yes", "partly", "no", "GPU")

_NUMBER = r"\d+\.\d+[a-z]?"
_ROW = re.compile(
    rf'^\| <a id="(?P<row>{_NUMBER})"></a>(?P=row) \| (?P<feature>.+?) \| (?P<here>.+?) \|.*\|$', re.MULTILINE
)
_SECTION = re.compile(r"^## (\d+) (.+)$", re.MULTILINE)
_COUNTS = re.compile(r"(?<=<!-- counts -->\n).*?(?=<!-- end of counts -->)", re.DOTALL)
_CITED = re.compile(
    rf"(?:\b(?:features?|rows?)\s+|tensorrt-features\.md#)({_NUMBER}(?:(?:\s*(?:,|to|and|-)\s*){_NUMBER})*)\b(?!\.\d)",
    re.IGNORECASE,
)
_SPAN = re.compile(rf"({_NUMBER})(?:\s*(?:to|-)\s*({_NUMBER}))?")
# Tests whose citations are examples.
_EXAMPLES = ("test_feature_page.py", "test_generated_pages.py")
_FUNCTION = re.compile(r"\bdef test_\w+?_(\d+)_(\d+[a-z]?)\(")


def rows_of(page: str) -> tuple[str, ...]:
    """The numbers of all rows, in the order of the page."""
    return tuple(match["row"] for match in _ROW.finditer(page))


def answers_of(page: str) -> dict[str, str]:
    """What the page says of each row: the word before the colon, or the whole cell."""
    return {match["row"]: match["here"].partition(":")[0] for match in _ROW.finditer(page)}


def cited_in(text: str, rows: Sequence[str]) -> set[str]:
    """The rows that a text cites; a number that is no row stands for itself, so that a test can name it."""
    found: set[str] = set()
    for citation in _CITED.finditer(text):
        for first, last in _SPAN.findall(citation[1]):
            found |= _between(_named(first, rows), _named(last or first, rows), rows)
    for section, number in _FUNCTION.findall(text):
        found |= set(_named(f"{section}.{number}", rows))
    return found


def _named(number: str, rows: Sequence[str]) -> list[str]:
    """The row of a number, or all whose number goes on with a letter."""
    return [row for row in rows if row == number or (row[:-1] == number and row[-1].isalpha())] or [number]


def _between(first: list[str], last: list[str], rows: Sequence[str]) -> set[str]:
    if first[0] not in rows or last[-1] not in rows:
        return {*first, *last}
    return set(rows[rows.index(first[0]) : rows.index(last[-1]) + 1])


def citing_tests(root: Path, rows: Sequence[str]) -> dict[str, list[Path]]:
    """The test files that cite each row, sorted by name."""
    found: dict[str, list[Path]] = {row: [] for row in rows}
    for path in _tests(root):
        for row in cited_in(path.read_text(encoding="utf-8"), rows):
            found.setdefault(row, []).append(path.relative_to(root))
    return {row: sorted(paths, key=lambda path: (path.stem, path)) for row, paths in found.items()}


def _tests(root: Path) -> Iterator[Path]:
    for suffix in ("py", "mlir"):
        yield from (path for path in (root / "test").rglob(f"*.{suffix}") if path.name not in _EXAMPLES)


def feature_page(page: str, root: Path) -> str:
    """The page with the tests of each row and the table of counts as they are today."""
    tests = citing_tests(root, rows_of(page))

    def with_tests(match: re.Match[str]) -> str:
        row = match["row"]
        return f'| <a id="{row}"></a>{row} | {match["feature"]} | {match["here"]} | {_links(tests[row])} |'

    return _COUNTS.sub(lambda _: _counts(page, tests), _ROW.sub(with_tests, page))


def _links(paths: Sequence[Path]) -> str:
    return ", ".join(f"[{path.stem}](../{path.as_posix()})" for path in paths) or "-"


def _counts(page: str, tests: Mapping[str, Sequence[Path]]) -> str:
    """A line for each section, and one for all."""
    answers = answers_of(page)
    lines = [f"| section | {' | '.join(ANSWERS)} | with tests |", "|" + "---|" * (len(ANSWERS) + 2)]
    for number, title in _SECTION.findall(page):
        rows = [row for row in answers if row.partition(".")[0] == number]
        lines.append(_count(f"[{number} {title}](#{_anchor(f'{number} {title}')})", rows, answers, tests))
    lines.append(_count("all", list(answers), answers, tests))
    return "\n".join(lines) + "\n"


def _count(name: str, rows: list[str], answers: Mapping[str, str], tests: Mapping[str, Sequence[Path]]) -> str:
    counted = Counter(answers[row] for row in rows)
    cells = [*(str(counted[answer]) for answer in ANSWERS), str(sum(bool(tests[row]) for row in rows))]
    return f"| {name} | {' | '.join(cells)} |"


def _anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
