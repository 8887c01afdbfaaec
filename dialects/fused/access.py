"""Which element of an operand an iteration reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirt.dialects.broadcasting import is_repeated
from mlirt.dialects.symbolic import Call, Dim, Expr, Symbol, floor_div, minimum, substitute, sym
from mlirt.dialects.symbolic_bounds import never_broadcast
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import is_unknown


@irdl_attr_definition
class AccessAttr(ParametrizedAttribute):
    """One index expression per operand dimension over the iteration dimensions `d0`, `d1`, ..

    `#fused.access<["d0", "0", "2*d2 + 1"]>` reads `x[d0, 0, 2*d2 + 1]`. Expressions are linear in the iteration
    dimensions; coefficients and offsets may use the symbols of the network's dimensions. Every access is in bounds.
    """

    name = "fused.access"

    expressions: ArrayAttr[StringAttr] = param_def()

    @staticmethod
    def of(indices: Sequence[Dim]) -> AccessAttr:
        return _access_of(tuple(indices))

    def indices(self) -> tuple[Dim, ...]:
        known = vars(self).get(_INDICES)  # they are asked for often, and never change
        if known is None:
            known = vars(self)[_INDICES] = tuple([parse(text.data) for text in self.expressions])
        return known

    def substituted(self, places: Mapping[str, Dim]) -> AccessAttr:
        """The same access where other expressions stand for iteration dimensions, by their names."""
        return AccessAttr.of([substitute(index, places) for index in self.indices()])

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.expressions)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            texts = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        return [ArrayAttr(StringAttr(text) for text in texts)]


_INDICES = "_indices"
"""Where an access keeps its expressions once they were asked for."""


@lru_cache(maxsize=8192)
def _access_of(indices: tuple[Dim, ...]) -> AccessAttr:
    return AccessAttr(ArrayAttr(StringAttr(str(index)) for index in indices))


@lru_cache
def iteration(axis: int) -> Dim:
    """The iteration dimension `d<axis>`."""
    return sym(f"d{axis}")


def broadcast_access(operand: Sequence[Dim], space: Sequence[Dim]) -> AccessAttr:
    """Read an operand of the same rank as the iteration space, length-1 dimensions repeated.

    A length that only a run may find to be 1 has a factor that is 0 then, and 1 where it is that of the space.
    """
    return _broadcast_access(tuple(operand), tuple(space))


@lru_cache(maxsize=8192)
def _broadcast_access(operand: tuple[Dim, ...], space: tuple[Dim, ...]) -> AccessAttr:
    return AccessAttr.of(
        [_place(axis, size, extent) for axis, (size, extent) in enumerate(zip(operand, space, strict=True))]
    )


def _place(axis: int, size: Dim, extent: Dim) -> Dim:
    if is_unknown(size) or is_unknown(extent) or never_broadcast(size, extent):
        return iteration(axis)
    if isinstance(size, int) or is_repeated(size):
        return 0 if is_repeated(size) else iteration(axis)
    return iteration(axis) * repeat_factor(size)


def repeat_factor(length: Dim) -> Dim:
    """0 for a length of 1, which is repeated, and 1 for longer ones."""
    return floor_div(minimum(length, 2), 2)


def repeated_lengths(factor: Dim) -> list[Dim]:
    """The lengths whose `repeat_factor` a number is multiplied with."""
    atoms = [] if isinstance(factor, int) else [atom for monomial, _ in factor.terms for atom in monomial]
    inner = [atom.left for atom in atoms if isinstance(atom, Call) and atom.function == "//" and atom.right == 2]
    least = [one.terms[0][0] for one in inner if isinstance(one, Expr) and len(one.terms) == 1]
    lengths = [call.left for (call, *_) in least if isinstance(call, Call) and call.function == "min"]
    return [length for length in dict.fromkeys(lengths) if any(_one(atom) == repeat_factor(length) for atom in atoms)]


def unrepeated(dim: Dim) -> Dim:
    """A number where each `repeat_factor` in it is 1."""
    if isinstance(dim, int):
        return dim
    factors = [repeat_factor(length) for length in repeated_lengths(dim)]
    result: Dim = 0
    for monomial, coefficient in dim.terms:
        term: Dim = coefficient
        for atom in monomial:
            term = term if _one(atom) in factors else term * _one(atom)
        result = result + term
    return result


def _one(atom: Symbol | Call) -> Expr:
    return Expr((((atom,), 1),))


@lru_cache(maxsize=8192)
def is_elementwise(access: AccessAttr, shape: tuple[Dim, ...]) -> bool:
    """Whether every iteration over `shape` reads the element at its own place; an axis of length 1 has only place 0."""
    indices = access.indices()
    places = enumerate(zip(indices, shape, strict=False))
    return len(indices) == len(shape) and all(
        index == iteration(axis) or (length == 1 and index == 0) for axis, (index, length) in places
    )
