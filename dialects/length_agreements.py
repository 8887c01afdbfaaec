"""Lengths that a network needs to agree, which nothing but the shapes of a run can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Dim, substitute
from mlirt.errors import InvalidInputError

# On a function: an array of a layer's name, the two lengths, and the kind where they need not be equal.
ATTRIBUTE = "trt.equal_lengths"

# `equal`: both lengths are the same. `equal_or_one`: they are, or the left one is 1 and is repeated.
AgreementKind: TypeAlias = Literal["equal", "equal_or_one"]


@dataclass(frozen=True)
class Agreement:
    """Two lengths that the operands of a layer have, and what must hold for them."""

    layer: str
    left: Dim
    right: Dim
    kind: AgreementKind = "equal"

    def holds(self, left: int, right: int) -> bool:
        """Whether these values of the lengths fit together."""
        return left == right or (self.kind == "equal_or_one" and left == 1)

    def check(self, values: Mapping[str, int]) -> None:
        """Raise `InvalidInputError` where these values of symbols make lengths that do not fit together."""
        left, right = substitute(self.left, values), substitute(self.right, values)
        if isinstance(left, int) and isinstance(right, int) and not self.holds(left, right):
            raise InvalidInputError(
                f"layer {self.layer}: its inputs have the lengths {left} and {right} ({self.left} and {self.right})"
            )


def kind_named(name: str) -> AgreementKind:
    """The kind of a name; raises `ValueError` for an unknown one."""
    for kind in get_args(AgreementKind):
        if kind == name:
            return kind
    raise ValueError(f"there is no kind {name!r} of agreement: expected one of {', '.join(get_args(AgreementKind))}")


def agreements_of(function: FuncOp) -> list[Agreement]:
    """What `require-equal-lengths` has found."""
    found = function.attributes.get(ATTRIBUTE)
    if found is None:
        return []
    return [_read(entry) for entry in cast("ArrayAttr[ArrayAttr[Attribute]]", found)]


def set_agreements(function: FuncOp, agreements: Sequence[Agreement]) -> None:
    """Note on a function what its runs have to check; nothing is noted of nothing."""
    function.attributes.pop(ATTRIBUTE, None)
    if agreements:
        function.attributes[ATTRIBUTE] = ArrayAttr(map(_written, agreements))


def _written(one: Agreement) -> ArrayAttr[Attribute]:
    kind = [] if one.kind == "equal" else [StringAttr(one.kind)]
    return ArrayAttr([StringAttr(one.layer), DimsAttr.of([one.left, one.right]), *kind])


def _read(entry: ArrayAttr[Attribute]) -> Agreement:
    layer, lengths, *kinds = entry
    assert isinstance(layer, StringAttr)
    assert isinstance(lengths, DimsAttr)
    kind: AgreementKind = "equal"
    for given in kinds:
        assert isinstance(given, StringAttr)
        kind = kind_named(given.data)
    left, right = lengths.dims()
    return Agreement(layer.data, left, right, kind)
