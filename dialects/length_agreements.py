"""Lengths that a network needs to be equal, which nothing but the shapes of a run can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Dim

# On a function: an array of pairs of a layer's name and the two lengths.
ATTRIBUTE = "trt.equal_lengths"


@dataclass(frozen=True)
class Agreement:
    """Two lengths that the operands of a layer have where they must have one."""

    layer: str
    left: Dim
    right: Dim


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
        entries = (ArrayAttr([StringAttr(one.layer), DimsAttr.of([one.left, one.right])]) for one in agreements)
        function.attributes[ATTRIBUTE] = ArrayAttr(entries)


def _read(entry: ArrayAttr[Attribute]) -> Agreement:
    layer, lengths = entry
    assert isinstance(layer, StringAttr)
    assert isinstance(lengths, DimsAttr)
    return Agreement(layer.data, *lengths.dims())
