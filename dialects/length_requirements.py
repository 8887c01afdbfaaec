"""What a layer needs of its lengths: the verifier decides where they are known, and each run where they are not.

A requirement compares two formulas of the network's symbols. Ops say theirs in `TensorOp.length_requirements`; those
that nothing proves stand in the plan, with the layer's name, and are checked as soon as a run knows the symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Dim, modulo, substitute, symbols
from mlirt.dialects.symbolic_bounds import at_most

# On a function: arrays of a layer's name, a relation, the lengths [left, right, where] and what is wrong otherwise.
ATTRIBUTE = "trt.length_requirements"
# On a function: arrays of a layer's name, or its words, and the numbers of an input and of its axis.
BY_LAYER = "trt.lengths_by_layer"


class Relation(StrEnum):
    EQUAL = "equal"
    """left = right"""
    EQUAL_OR_ONE = "equal_or_one"
    """left = right, or left = 1: it is repeated"""
    AT_LEAST = "at_least"
    """left >= right"""
    MULTIPLE = "multiple"
    """left is a whole multiple of right"""


@dataclass(frozen=True)
class LengthRequirement:
    """`left` and `right` are in a relation, wherever `where` is not 0.

    `fault` says what is wrong otherwise; `{left}` and `{right}` in it stand for the lengths. `rule` is the number of
    the constraint in the op's docstring.
    """

    relation: Relation
    left: Dim
    right: Dim
    fault: str
    rule: str = ""
    where: Dim = 1
    layer: str = ""

    @property
    def lengths(self) -> tuple[Dim, Dim, Dim]:
        return self.left, self.right, self.where

    @property
    def symbols(self) -> frozenset[str]:
        return symbols(self.left) | symbols(self.right) | symbols(self.where)

    @property
    def claim(self) -> object:
        """Equal for requirements that ask for the same."""
        if self.relation is Relation.EQUAL:
            return self.relation, frozenset([self.left - self.right, self.right - self.left]), self.where
        return self.relation, *self.lengths

    @property
    def claims(self) -> frozenset[object]:
        """What holds wherever it does: lengths that are equal need not be 1."""
        if self.relation is not Relation.EQUAL:
            return frozenset([self.claim])
        pairs = (self.left, self.right), (self.right, self.left)
        return frozenset([self.claim, *((Relation.EQUAL_OR_ONE, *pair, self.where) for pair in pairs)])

    def holds(self) -> bool | None:
        """Whether all runs, or none, fulfil it; `None` where the lengths of a run decide."""
        if self.where == 0 or self._is_proven():
            return True
        return False if all(isinstance(length, int) for length in self.lengths) else None

    def _is_proven(self) -> bool:
        missing = self.right - self.left
        if self.relation is Relation.EQUAL:
            return missing == 0
        if self.relation is Relation.EQUAL_OR_ONE:
            return missing == 0 or self.left == 1
        if self.relation is Relation.MULTIPLE:
            return self.left == 0 or (self.right != 0 and modulo(self.left, self.right) == 0)
        # Where the condition is a length it is at least 1.
        return at_most(missing, 0) or (self.where != 1 and at_most(missing + self.where - 1, 0))

    def violation(self, values: Mapping[str, int]) -> str | None:
        """What is wrong for these values of the symbols; `None` also where one has no value."""
        actual = self.substituted(values)
        return actual.explained() if actual.holds() is False else None

    def explained(self) -> str:
        """What is wrong where it does not hold."""
        return self.fault.replace("{left}", str(self.left)).replace("{right}", str(self.right))

    def substituted(self, values: Mapping[str, Dim]) -> LengthRequirement:
        """The same with other dimensions for symbols."""
        left, right, where = (substitute(length, values) for length in self.lengths)
        return replace(self, left=left, right=right, where=where)


def equal(rule: str, label: str, expected: Dim, found: Dim, fault: str = "") -> LengthRequirement:
    """Two lengths are equal; the message begins with a label, unless it has words of its own."""
    text = fault or f"{label}: expected {{left}}, got {{right}}"
    return LengthRequirement(Relation.EQUAL, expected, found, text, rule)


def at_least(rule: str, fault: str, length: Dim, least: Dim, where: Dim = 1) -> LengthRequirement:
    """A length has a lower bound, wherever `where` is not 0."""
    condition = min(abs(where), 1) if isinstance(where, int) else where
    return LengthRequirement(Relation.AT_LEAST, length, least, fault, rule, condition)


def multiple(rule: str, fault: str, length: Dim, divisor: Dim) -> LengthRequirement:
    """A length is a whole multiple of another one."""
    return LengthRequirement(Relation.MULTIPLE, length, divisor, fault, rule)


def requirements_of(function: FuncOp) -> list[LengthRequirement]:
    """What `require-lengths` has found that each run must check before it begins."""
    found = function.attributes.get(ATTRIBUTE)
    if found is None:
        return []
    return [_read(entry) for entry in cast("ArrayAttr[ArrayAttr[Attribute]]", found)]


def set_requirements(function: FuncOp, requirements: Sequence[LengthRequirement]) -> None:
    """Note on a function what its runs have to check; nothing is noted of nothing."""
    function.attributes.pop(ATTRIBUTE, None)
    if requirements:
        function.attributes[ATTRIBUTE] = ArrayAttr(map(_written, requirements))


def input_lengths_by_layer(function: FuncOp) -> dict[tuple[int, int], str]:
    """Which layer needs the length of an input to be what it is, by the places of the input and of its axis.

    Instead of its name there may be what it says of other lengths: `{left}` is what is expected, `{right}` what came.
    """
    found = function.attributes.get(BY_LAYER)
    if found is None:
        return {}
    result: dict[tuple[int, int], str] = {}
    for layer, place in cast("ArrayAttr[ArrayAttr[Attribute]]", found):
        assert isinstance(layer, StringAttr)
        assert isinstance(place, DenseArrayBase)
        index, axis = (int(number) for number in place.get_values())
        result[index, axis] = layer.data
    return result


def set_input_lengths_by_layer(function: FuncOp, layers: Mapping[tuple[int, int], str]) -> None:
    """Note them on a function."""
    if layers:
        places = sorted(layers.items())
        entries = (ArrayAttr([StringAttr(layer), DenseArrayBase.from_list(i64, place)]) for place, layer in places)
        function.attributes[BY_LAYER] = ArrayAttr(entries)


def _written(one: LengthRequirement) -> ArrayAttr[Attribute]:
    texts = StringAttr(one.layer), StringAttr(str(one.relation)), StringAttr(one.fault)
    return ArrayAttr([*texts[:2], DimsAttr.of(one.lengths), texts[2]])


def _read(entry: ArrayAttr[Attribute]) -> LengthRequirement:
    layer, relation, lengths, fault = entry
    assert isinstance(layer, StringAttr)
    assert isinstance(relation, StringAttr)
    assert isinstance(lengths, DimsAttr)
    assert isinstance(fault, StringAttr)
    left, right, where = lengths.dims()
    return LengthRequirement(Relation(relation.data), left, right, fault.data, "", where, layer.data)
