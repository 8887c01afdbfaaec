"""Layers of one input that one launch computes side by side: a module carries their names to the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

SIBLINGS = "trt.siblings"


def add_siblings(module: ModuleOp, layers: Sequence[str]) -> None:
    """Let a module carry that these layers were joined."""
    group = ArrayAttr([StringAttr(name) for name in layers])
    known = cast("ArrayAttr[ArrayAttr[StringAttr]]", module.attributes.get(SIBLINGS, ArrayAttr([])))
    module.attributes[SIBLINGS] = ArrayAttr([*known, group])


def siblings_in(module: ModuleOp) -> list[list[str]]:
    """The groups of names that a module carries."""
    found = module.attributes.get(SIBLINGS)
    if not isinstance(found, ArrayAttr):
        return []
    return [[name.data for name in group] for group in cast("ArrayAttr[ArrayAttr[StringAttr]]", found)]


def siblings_among(groups: Sequence[Sequence[str]], names: Iterable[str]) -> list[list[str]]:
    """The groups all of whose names are among `names`, which are those of one launch."""
    own = set(names)
    return [list(group) for group in groups if own.issuperset(group)]
