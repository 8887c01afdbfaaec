"""Chooses from an e-graph, for the values that others read, the layers that cost least together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from mlirt.passes.rules.equality.costs import Costs
from mlirt.passes.rules.equality.egraph import EGraph

_ROUNDS = 4
_MAX_WAYS = 12  # of one class that are compared
_NOTHING = 1e-9  # relative: smaller gains are none


@dataclass(frozen=True)
class Choice:
    """Layers in an order in which each has its operands, for each class the value that stands for it, and the cost."""

    ops: Sequence[Operation]
    values: Mapping[int, SSAValue]
    cost: float


class Extraction:
    """The search for the cheapest choice.

    It begins with the layers of the network, and with those that are cheapest alone, and exchanges one class after the
    other as long as the layers together become cheaper. All ties go to the layer that came first.
    """

    def __init__(
        self, graph: EGraph, costs: Costs, outputs: Sequence[SSAValue], places: Mapping[Operation, float]
    ) -> None:
        self._graph, self._costs, self._outputs, self._places = graph, costs, outputs, places
        self._kept = [graph.find(value) for value in outputs]
        self._alone: dict[int, SSAValue] = {}

    def before(self) -> float:
        """What the layers of the network cost as they are."""
        own = [op for op in self._graph.nodes if op.parent is not self._graph.scratch]
        return self._costs.of(own, {}, set(self._outputs))

    def best(self) -> Choice | None:
        """The cheapest choice that was found; None where nothing is cheaper than what is there."""
        self._alone = self._cheapest_alone()
        own = (op.results[0] for op in reversed(self._graph.nodes) if op.parent is not self._graph.scratch)
        starts = ({self._graph.find(value): value for value in own}, self._alone)
        found = min((self._improved(start) for start in starts), key=lambda one: one.cost)
        return found if found.cost < self.before() * (1 - _NOTHING) else None

    def _improved(self, start: Mapping[int, SSAValue]) -> Choice:
        chosen = dict(start)
        best = self._evaluated(chosen)
        for _ in range(_ROUNDS):
            before = best.cost
            for number in list(best.values):
                for way in self._graph.members(number)[:_MAX_WAYS]:
                    if way is best.values.get(number):
                        continue
                    found = self._evaluated({**self._alone, **best.values, number: way})
                    if found.cost < best.cost * (1 - _NOTHING):
                        best = found
            if best.cost >= before:
                break
        return best

    def _evaluated(self, chosen: Mapping[int, SSAValue]) -> Choice:
        ops: list[Operation] = []
        values: dict[int, SSAValue] = {}
        open_classes: set[int] = set()
        waiting: list[tuple[int, bool]] = [(number, False) for number in reversed(self._kept)]
        while waiting:
            number, is_ready = waiting.pop()
            if is_ready:
                open_classes.discard(number)
                owner = values[number].owner
                if isinstance(owner, Operation) and self._graph.holds(owner):
                    ops.append(owner)
                continue
            if number in values:
                if number in open_classes:  # a value that would be computed from itself
                    return Choice((), {}, math.inf)
                continue
            values[number] = value = self._value(number, chosen)
            open_classes.add(number)
            waiting.append((number, True))
            owner = value.owner
            if isinstance(owner, Operation) and self._graph.holds(owner):
                waiting += [(self._graph.find(one), False) for one in reversed(owner.operands)]
        if not self._is_in_order(ops, values):
            return Choice((), {}, math.inf)
        operands = {one: values[self._graph.find(one)] for op in ops for one in op.operands}
        kept = {values[number] for number in self._kept}
        return Choice(ops, values, self._costs.of(ops, operands, kept))

    def _value(self, number: int, chosen: Mapping[int, SSAValue]) -> SSAValue:
        found = chosen.get(number)
        return self._graph.members(number)[0] if found is None else found

    def _is_in_order(self, ops: Sequence[Operation], values: Mapping[int, SSAValue]) -> bool:
        """Whether each layer of the network that is kept, and each value that is replaced, comes after all it needs."""
        needs: dict[Operation, float] = {}
        for op in ops:
            latest = max((self._place(values[self._graph.find(one)], needs) for one in op.operands), default=-1)
            own = self._places.get(op)
            if own is not None and latest >= own:
                return False
            needs[op] = latest if own is None else own
        for value, number in zip(self._outputs, self._kept, strict=True):
            found = values[number]
            assert isinstance(value.owner, Operation)
            if found is not value and self._place(found, needs) >= self._places[value.owner]:
                return False
        return True

    def _place(self, value: SSAValue, needs: Mapping[Operation, float]) -> float:
        owner = value.owner
        if not isinstance(owner, Operation):
            return -1
        return needs[owner] if owner in needs else self._places.get(owner, -1)

    def _cheapest_alone(self) -> dict[int, SSAValue]:
        """For each class the layer that is cheapest with all that it needs, as if nothing were shared."""
        best: dict[int, tuple[float, SSAValue]] = {}
        for value in self._graph.outside():
            best.setdefault(self._graph.find(value), (0.0, value))
        find, nodes = self._graph.find, [(op.results[0], op) for op in self._graph.nodes]
        own = {value: self._costs.of([op], {}, [value]) for value, op in nodes}
        needs = {value: {find(one) for one in op.operands} for value, op in nodes}
        is_changed = True
        while is_changed:
            is_changed = False
            for value, _ in nodes:
                number, cost = find(value), own[value]
                for operand in needs[value]:
                    cost += best[operand][0] if operand in best else math.inf
                if cost < best.get(number, (math.inf, value))[0] * (1 - _NOTHING):
                    best[number] = (cost, value)
                    is_changed = True
        return {number: value for number, (_, value) in best.items()}
