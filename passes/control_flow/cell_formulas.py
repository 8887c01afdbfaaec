"""What an iteration of a recurrent layer computes, as sums of products: equal formulas are equal however they are
written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.activation import ActivationKind

_MAX_TERMS = 64


class NotACellError(Exception):
    """The layers of a loop are no recurrent cell that has a name."""


def rows_and_columns(value: SSAValue) -> tuple[Dim, int]:
    """A tensor as row vectors: its last dimension, and the only other one that is not 1."""
    sizes = dims(value.type) or (1,)
    rows = [size for size in sizes[:-1] if size != 1]
    if len(rows) > 1 or not isinstance(sizes[-1], int):
        raise NotACellError(f"{value.type} is no row for each sequence")
    return (rows[0] if rows else 1), sizes[-1]


@dataclass(frozen=True)
class State:
    """Columns of what the loop carries at a place, as it is when the iteration begins."""

    place: int
    first: int
    width: int


@dataclass(frozen=True)
class SliceOfIteration:
    """Columns of the slice of a sequence along an axis; the slice of iteration i is `start + i`, or `start - i`."""

    sequence: SSAValue
    axis: int
    start: Dim
    backwards: bool
    first: int
    width: int


@dataclass(frozen=True)
class Invariant:
    """Columns of a tensor that is the same in all iterations; one column stands for all."""

    value: SSAValue
    first: int
    width: int


@dataclass(frozen=True)
class Matrix:
    """Some rows and columns of a matrix that is the same in all iterations: of its transpose, if it is `transposed`."""

    value: SSAValue
    transposed: bool
    row: int
    rows: int
    column: int
    columns: int


@dataclass(frozen=True)
class Product:
    """A product of row vectors, number by number, times a matrix."""

    factors: frozenset[Atom]
    matrix: Matrix


@dataclass(frozen=True)
class Activated:
    """An activation of a formula."""

    kind: ActivationKind
    alpha: float
    beta: float
    inner: Formula

    @property
    def function(self) -> tuple[ActivationKind, float, float]:
        return self.kind, self.alpha, self.beta


Atom = State | SliceOfIteration | Invariant | Product | Activated
Term = tuple[frozenset[Atom], float]


@dataclass(frozen=True)
class Formula:
    """A sum of terms, each a coefficient times different atoms, number by number."""

    terms: frozenset[Term]

    @staticmethod
    def of(*atoms: Atom) -> Formula:
        """The product of atoms."""
        return Formula(frozenset({(frozenset(atoms), 1.0)}))

    @staticmethod
    def number(value: float) -> Formula:
        return Formula.sum([(frozenset[Atom](), value)])

    @staticmethod
    def sum(terms: Iterable[Term]) -> Formula:
        """The sum of terms, of which those of the same atoms become one."""
        totals: dict[frozenset[Atom], float] = {}
        for atoms, coefficient in terms:
            totals[atoms] = totals.get(atoms, 0.0) + coefficient
        if len(totals) > _MAX_TERMS:
            raise NotACellError("it has too many terms")
        return Formula(frozenset((atoms, number) for atoms, number in totals.items() if number != 0))

    def __add__(self, other: Formula) -> Formula:
        return Formula.sum([*self.terms, *other.terms])

    def __mul__(self, other: Formula) -> Formula:
        made: list[Term] = []
        for atoms, number in self.terms:
            for others, factor in other.terms:
                if atoms & others:
                    raise NotACellError("it has a square")
                made.append((atoms | others, number * factor))
        return Formula.sum(made)

    def coefficients(self) -> dict[frozenset[Atom], float]:
        return dict(self.terms)


def activations_in(terms: Sequence[Term]) -> list[Activated]:
    """The activations among the atoms of terms, each once."""
    found = dict.fromkeys(atom for atoms, _ in terms for atom in atoms if isinstance(atom, Activated))
    return list(found)
