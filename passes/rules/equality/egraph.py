"""An e-graph of layers: classes of equal tensors, and which layers compute each of them from members of classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.ir import Attribute, Block, Operation, SSAValue

Key: TypeAlias = "tuple[object, ...]"


class EGraph:
    """Layers of a block, and those that equations add; values that are equal are in one class.

    A layer with one result is a node: its operands stand for their classes. Equal nodes are one (hash-consing), and two
    nodes whose operands became equal are merged (congruence). New layers are in a block of their own, `scratch`, until
    they are chosen.
    """

    def __init__(self, ops: Iterable[Operation]) -> None:
        self.scratch = Block()
        self.nodes: list[Operation] = []
        self._parent: list[int] = []
        self._members: list[list[SSAValue]] = []
        self._class_of: dict[SSAValue, int] = {}
        self._known: dict[Key, SSAValue] = {}
        self._held: set[Operation] = set()
        self.merged: list[tuple[str, Operation, SSAValue]] = []
        """By which equations values have become equal."""
        self.changes = 0
        """How many nodes have been added and classes merged."""
        for op in ops:
            self._enter(op)

    def holds(self, op: Operation) -> bool:
        """Whether an op is a node."""
        return op in self._held

    def outside(self) -> Iterable[SSAValue]:
        """The values that are no results of nodes: they are there anyway."""
        owners = ((value, value.owner) for value in list(self._class_of))
        return [value for value, owner in owners if not isinstance(owner, Operation) or owner not in self._held]

    def find(self, value: SSAValue) -> int:
        """The class of a value; one that comes from outside is alone in a class."""
        number = self._class_of.get(value)
        return self._open(value) if number is None else self._root(number)

    def members(self, number: int) -> Sequence[SSAValue]:
        """The values of a class, those of the network first."""
        return self._members[self._root(number)]

    def values_of(self, value: SSAValue) -> Sequence[SSAValue]:
        """A value and all that are equal to it."""
        return tuple(self._members[self.find(value)])

    def add(self, op: Operation) -> Operation:
        """Make a new layer a node, or give back the one that is equal to it."""
        key = self._key(op)
        known = self._known.get(key)
        if known is not None and isinstance(known.owner, Operation):
            _erase(op)
            return known.owner
        self.scratch.add_op(op)
        self._enter(op, key)
        return op

    def merge(self, one: SSAValue, other: SSAValue) -> bool:
        """Let two values be equal; whether they were not yet."""
        first, second = sorted((self.find(one), self.find(other)))
        if first == second:
            return False
        self._parent[second] = first
        self._members[first] += self._members[second]
        self._members[second] = []
        self.changes += 1
        return True

    def rebuild(self) -> None:
        """Merge nodes whose operands have become equal, until there are none."""
        is_changed = True
        while is_changed:
            is_changed = False
            self._known = {}
            for op in self.nodes:
                known = self._known.setdefault(self._key(op), op.results[0])
                is_changed = self.merge(known, op.results[0]) or is_changed

    def erase_unused(self, kept: Iterable[Operation]) -> None:
        """Erase new layers but those that are kept, which leave the scratch block."""
        stay = set(kept)
        for op in stay:
            if op.parent is self.scratch:
                op.detach()
        for op in reversed(list(self.scratch.ops)):
            _erase(op)

    def _enter(self, op: Operation, key: Key | None = None) -> None:
        self.nodes.append(op)
        self._held.add(op)
        self._open(op.results[0])
        known = self._known.setdefault(self._key(op) if key is None else key, op.results[0])
        if known is not op.results[0]:
            self.merge(known, op.results[0])
        self.changes += 1

    def _open(self, value: SSAValue) -> int:
        number = len(self._parent)
        self._parent.append(number)
        self._members.append([value])
        self._class_of[value] = number
        return number

    def _root(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def _key(self, op: Operation) -> Key:
        attributes: frozenset[tuple[str, Attribute]] = frozenset((*op.properties.items(), *op.attributes.items()))
        return (op.name, tuple(map(self.find, op.operands)), attributes, op.results[0].type)


def _erase(op: Operation) -> None:
    if op.parent is not None:
        op.detach()
    op.erase(safe_erase=False)
