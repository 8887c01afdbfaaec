"""docs/glossary.md: each place that it names exists and has the term, so that a search for a term finds the code."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from mlirt.dialects import registry

ROOT = Path(__file__).parents[2]
_ROW = re.compile(
    r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| (?P<origin>[^|]+) \| (?P<where>`[^|]+) \|$", re.MULTILINE
)
_PLACE = re.compile(r"`([^`]+)`")
_OP = re.compile(r"(?:trt|fused|kernel|plan)\.\w+")
# What is known of a pipelined, persistent, vectorised kernel is looked for by these words.
_SEARCHED = (
    "accumulator",
    "epilogue",
    "im2col",
    "occupancy",
    "persistent",
    "pipeline",
    "prefetch",
    "prologue",
    "software pipelining",
    "split k",
    "unroll",
    "vectoriz",
)


@dataclass(frozen=True)
class Entry:
    """A line of the glossary."""

    term: str
    meaning: str
    origin: str
    places: tuple[str, ...]

    def files(self) -> list[Path]:
        return [ROOT / place for place in self.places if "/" in place]

    def names(self) -> list[str]:
        """Names that stand behind a file and are in it."""
        return [place for place in self.places if "/" not in place and not _OP.fullmatch(place)]

    def ops(self) -> list[str]:
        return [place for place in self.places if "/" not in place and _OP.fullmatch(place)]


def _entries() -> list[Entry]:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [match.groupdict() for match in _ROW.finditer(page)]
    assert len(rows) + page.count("| term | meaning | from | where |") * 2 == page.count("\n|"), "a row is not read"
    return [Entry(row["term"], row["meaning"], row["origin"], tuple(_PLACE.findall(row["where"]))) for row in rows]


ENTRIES = _entries()


def _plain(text: str) -> str:
    """Lower case, with a single space for all that words are divided by."""
    return re.sub(r"[\s_/-]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text)).lower()


def _op_text(name: str) -> str:
    ops = {op.name: op for op in registry.load(name.partition(".")[0]).operations}
    assert name in ops, f"there is no op {name}"
    return f"{name} {inspect.getdoc(ops[name])}"


def test_terms_are_unique_and_explained() -> None:
    terms = [entry.term for entry in ENTRIES]
    assert len(terms) == len(set(terms))
    assert not [entry.term for entry in ENTRIES if not entry.meaning.endswith(".") or not entry.places]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.term)
def test_places_exist_and_have_the_term(entry: Entry) -> None:
    missing = [path for path in entry.files() if not path.exists()]
    assert not missing
    text = " ".join(path.read_text(encoding="utf-8") for path in entry.files() if path.is_file())
    assert not [name for name in entry.names() if not re.search(rf"\b{name}\b", text)]
    everything = _plain(" ".join([text, *entry.places, *map(_op_text, entry.ops())]))
    assert re.search(re.sub(r"y$", "(y|ies)", _plain(entry.term)), everything), (
        f"none of {', '.join(entry.places)} has the words {entry.term!r}"
    )


@pytest.mark.parametrize("words", _SEARCHED)
def test_standard_words_are_found_in_the_code(words: str) -> None:
    files = [path for folder in ("passes", "kernels", "dialects") for path in (ROOT / folder).rglob("*.py")]
    assert any(words in _plain(path.read_text(encoding="utf-8")) for path in files)
