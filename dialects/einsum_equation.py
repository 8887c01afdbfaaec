"""The equation of an einsum: which label stands for which axis."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@dataclass(frozen=True)
class Equation:
    """One label per axis; axes under an ellipsis have the labels `0`, `1`, .. from its outermost axis."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @property
    def summed(self) -> tuple[str, ...]:
        """The labels that the output lacks, in order of appearance."""
        every = dict.fromkeys(label for labels in self.inputs for label in labels)
        return tuple(label for label in every if label not in self.output)


def parse_equation(text: str, ranks: Sequence[int]) -> Equation:
    """The equation for inputs of these ranks; raises `ValueError` with the number of the broken constraint (C2, C3)."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"C2: expected {len(ranks)} terms for {len(ranks)} inputs, got {len(terms)}")
    for term in (*terms, right):
        if not _TERM.fullmatch(term):
            raise ValueError(f"C2: expected labels a-z, A-Z and at most one ellipsis, got {term!r}")
    hidden = [_hidden(k, term, rank) for k, (term, rank) in enumerate(zip(terms, ranks, strict=True))]
    widest = max(hidden, default=0)
    inputs = tuple(_labels(term, count, widest) for term, count in zip(terms, hidden, strict=True))
    if not arrow:
        return Equation(inputs, _implicit(inputs, widest))
    output = _labels(right, widest if "..." in right else 0, widest)
    known = {label for labels in inputs for label in labels}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ValueError(f"C2: expected each label of the output once and in some input, got {right!r}")
    return Equation(inputs, output)


def _hidden(position: int, term: str, rank: int) -> int:
    """Number of axes that the ellipsis of a term stands for."""
    named = len(term.replace("...", ""))
    if named > rank or ("..." not in term and named != rank):
        raise ValueError(f"C3: number of subscripts for input operand {position} is {named}, its rank is {rank}")
    return rank - named


def _labels(term: str, hidden: int, widest: int) -> tuple[str, ...]:
    before, dots, after = term.partition("...")
    return (*before, *(str(k) for k in range(widest - hidden, widest) if dots), *after)


def _implicit(inputs: Sequence[Sequence[str]], widest: int) -> tuple[str, ...]:
    counts = Counter(label for labels in inputs for label in labels if label.isalpha())
    return (*map(str, range(widest)), *sorted(label for label, count in counts.items() if count == 1))
