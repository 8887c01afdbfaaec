"""A picture's graph: nodes with what is known of them, and which reads from which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

Fact: TypeAlias = "tuple[str, str]"
"""What a node is told to have, such as ("result", "float32 [1, 64, 56, 56]"); a name may come again."""


@dataclass(frozen=True)
class Node:
    """A box: its text, its kind (which colours it), the layers of the trained network in it, and facts about it."""

    label: str
    kind: str
    layers: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    launch: int | None = None
    """The launch that it stands for, in the plan's graph."""

    def with_facts(self, more: Iterable[Fact]) -> Node:
        """The same node with further facts."""
        return replace(self, facts=(*self.facts, *more))


@dataclass(frozen=True)
class Graph:
    """Nodes in an order of their computation; an edge leads from the one that makes a tensor to one that reads it."""

    title: str
    nodes: Sequence[Node]
    edges: Sequence[tuple[int, int]]


def short(names: Sequence[str], otherwise: str) -> str:
    """A box's text: the first layer's name, and how many more there are."""
    if not names:
        return otherwise
    return names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1}"
