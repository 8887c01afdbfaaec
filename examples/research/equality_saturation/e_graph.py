"""An e-graph over transpositions and pointwise functions: all equal forms of a term at once, and the cheapest of them.

A node is a head and the classes of its arguments; a class is a set of equal nodes. Heads are leaves, transpositions
and pointwise functions, of which "prod" and "sum" have rewrite rules. No IR is in here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Permutation = tuple[int, ...]
Shape = tuple[int, ...]

# What it costs to move an element, beside computing one: functions run in one launch, transpositions end it.
_MOVING = 4
_MAX_NODES = 4000


@dataclass(frozen=True)
class Leaf:
    """A tensor from outside, by its number."""

    number: int


@dataclass(frozen=True)
class Transpose:
    """Axis k of the result is axis permutation[k] of the argument."""

    permutation: Permutation


@dataclass(frozen=True)
class Pointwise:
    """A function of elements; arguments are broadcast. `details` tells apart functions of one name."""

    name: str
    details: object = None


Head = Leaf | Transpose | Pointwise
Node = tuple[Head, tuple[int, ...]]


@dataclass
class EGraph:
    """Classes by number; numbers of classes that have been joined lead to one of them (`find`)."""

    parents: list[int] = field(default_factory=list[int])
    shapes: list[Shape] = field(default_factory=list[Shape])
    constant: list[bool] = field(default_factory=list[bool])
    nodes: dict[Node, int] = field(default_factory=dict[Node, int])

    def find(self, number: int) -> int:
        while self.parents[number] != number:
            number = self.parents[number]
        return number

    def leaf(self, number: int, shape: Shape, is_constant: bool) -> int:
        return self._class_of((Leaf(number), ()), shape, is_constant)

    def add(self, head: Transpose | Pointwise, *arguments: int) -> int:
        """The class of a term."""
        given = tuple(self.find(one) for one in arguments)
        shapes = [self.shapes[one] for one in given]
        if isinstance(head, Transpose):
            if head.permutation == tuple(range(len(head.permutation))):
                return given[0]
            shape = tuple(shapes[0][axis] for axis in head.permutation)
        else:
            shape = tuple(0 if 0 in lengths else max(lengths) for lengths in zip(*shapes, strict=True))
        return self._class_of((head, given), shape, all(self.constant[one] for one in given))

    def _class_of(self, node: Node, shape: Shape, is_constant: bool) -> int:
        found = self.nodes.get(node)
        if found is None:
            found = len(self.parents)
            self.nodes[node] = found
            self.parents.append(found)
            self.shapes.append(shape)
            self.constant.append(is_constant)
        return self.find(found)

    def join(self, one: int, other: int) -> bool:
        """Make two classes one; False where they are."""
        one, other = sorted((self.find(one), self.find(other)))
        self.parents[other] = one
        return one != other

    def saturate(self) -> None:
        """Apply the rewrite rules to all nodes until nothing is new, or the graph is too large."""
        is_new = True
        while is_new and len(self.nodes) < _MAX_NODES:
            members = self._members()
            equal = [(number, form) for node, number in list(self.nodes.items()) for form in self._forms(node, members)]
            before = len(self.nodes)
            is_new = any([self.join(number, form) for number, form in equal])
            self._join_congruent()
            is_new = is_new or len(self.nodes) > before

    def _members(self) -> dict[int, list[Node]]:
        members: dict[int, list[Node]] = {}
        for node, number in self.nodes.items():
            members.setdefault(self.find(number), []).append(node)
        return members

    def _join_congruent(self) -> None:
        """Nodes with equal heads and arguments are in one class."""
        is_new = True
        while is_new:
            is_new, old, self.nodes = False, self.nodes, {}
            for (head, arguments), number in old.items():
                node = (head, tuple(self.find(one) for one in arguments))
                is_new = self.join(self.nodes.setdefault(node, self.find(number)), number) or is_new

    def _forms(self, node: Node, members: Mapping[int, list[Node]]) -> Iterator[int]:
        """Classes that a node is equal to."""
        head, arguments = node
        if isinstance(head, Transpose):
            for inner, below in members[self.find(arguments[0])]:
                if isinstance(inner, Transpose):  # two transpositions are one
                    joined = tuple(inner.permutation[axis] for axis in head.permutation)
                    yield self.add(Transpose(joined), *below)
                elif isinstance(inner, Pointwise):  # each argument is transposed instead of the result
                    yield self.add(inner, *(self.add(head, one) for one in below))
        elif isinstance(head, Pointwise):
            for permutation in self._permutations(arguments, members):  # the result instead of each argument
                back = Transpose(tuple(permutation.index(axis) for axis in range(len(permutation))))
                inside = self.add(head, *(self.add(back, one) for one in arguments))
                yield self.add(Transpose(permutation), inside)
            if head.name in ("prod", "sum"):
                yield from self._affine_forms(head, arguments, members)

    def _permutations(self, arguments: tuple[int, ...], members: Mapping[int, list[Node]]) -> set[Permutation]:
        nodes = [node for one in arguments for node in members.get(self.find(one), ())]
        return {head.permutation for head, _ in nodes if isinstance(head, Transpose)}

    def _affine_forms(
        self, head: Pointwise, arguments: tuple[int, ...], members: Mapping[int, list[Node]]
    ) -> Iterator[int]:
        """(a . c) . d = a . (c . d), (a + c) d = a d + c d, and a c + b c = (a + b) c, for constants c and d."""
        for a, d in (arguments, arguments[::-1]):
            for inner, below in members.get(self.find(a), ()):
                if not isinstance(inner, Pointwise) or inner.name not in ("prod", "sum"):
                    continue
                for b, c in (below, below[::-1]):
                    if inner == head and self.constant[c] and self.constant[d]:
                        yield self.add(head, b, self.add(head, c, d))
                    elif (inner.name, head.name) == ("sum", "prod") and self.constant[c] and self.constant[d]:
                        yield self.add(inner, self.add(head, b, d), self.add(head, c, d))
                    elif (inner.name, head.name) == ("prod", "sum") and self.constant[c]:
                        for other, (e, f) in self._products(d, members):
                            if other == inner and self.find(f) == self.find(c):
                                yield self.add(inner, self.add(head, b, e), c)

    def _products(self, number: int, members: Mapping[int, list[Node]]) -> Iterator[tuple[Head, tuple[int, int]]]:
        for head, arguments in members.get(self.find(number), ()):
            if isinstance(head, Pointwise) and head.name == "prod":
                yield head, (arguments[0], arguments[1])
                yield head, (arguments[1], arguments[0])

    def cheapest(self) -> dict[int, Node]:
        """The node of each class that begins its cheapest term."""
        costs: dict[int, float] = {}
        best: dict[int, Node] = {}
        is_new = True
        while is_new:
            is_new = False
            for node, number in self.nodes.items():
                number = self.find(number)
                if all(self.find(one) in costs for one in node[1]):
                    cost = self.cost(node[0], number) + sum(costs[self.find(one)] for one in node[1])
                    if cost < costs.get(number, float("inf")):
                        costs[number], best[number], is_new = cost, node, True
        return best

    def cost(self, head: Head, number: int) -> float:
        """What a node costs by itself: nothing where it depends on constants alone, which is computed once."""
        size = 1
        for length in self.shapes[number]:
            size *= length
        is_free = isinstance(head, Leaf) or self.constant[number]
        return (0 if is_free else size * _MOVING if isinstance(head, Transpose) else size) + 1e-3

    def total(self, roots: list[int], chosen: Mapping[int, Node]) -> float:
        """The cost of several terms, parts of both once."""
        seen: set[int] = set()
        waiting = [self.find(one) for one in roots]
        cost = 0.0
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                head, arguments = chosen[number]
                cost += self.cost(head, number)
                waiting += [self.find(one) for one in arguments]
        return cost
