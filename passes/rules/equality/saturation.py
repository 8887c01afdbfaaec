"""Equality saturation: where equations hold, their layers join an e-graph, from which the cheapest are taken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from mlirt.dialects.fast_math import RIGHTS
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.typical_sizes import typical_values
from mlirt.passes.remarks import applied, declined, recorder
from mlirt.passes.rules.equality.costs import Costs, MachineRates
from mlirt.passes.rules.equality.egraph import EGraph
from mlirt.passes.rules.equality.equation import EqualMatch, EqualSearch, Equation, outcome_of
from mlirt.passes.rules.equality.extraction import Choice, Extraction
from mlirt.passes.rules.equality.value_ranges import ValueRanges
from mlirt.passes.rules.layers import Layer

_SWEEPS = 3
_ITERATIONS = 6
_MAX_OPS = 48  # of a region
_MAX_REGIONS = 128  # in a sweep over a block
_MAX_NODES = 4  # in the e-graph for each of them
_MAX_WAYS = 16  # in which one equation matches at one layer
_REACH = 3  # layers around those that an equation matches
_MAX_READERS = 8  # of a value that are looked at


@dataclass
class Found:
    """What an equation gave at a layer: the right that is missing, or none."""

    rule: Equation
    root: Operation
    missing: tuple[str, ...]
    ops: tuple[Operation, ...]


class Saturation:
    """Equations at work on a module, with the rights that are granted."""

    def __init__(
        self, equations: Sequence[Equation], ctx: Context, rates: MachineRates, rights: Collection[str]
    ) -> None:
        self._ctx, self._rates, self._rights = ctx, rates, frozenset(rights)
        self._all = [(one, root) for one in equations for root in one.roots]
        self._by_class: dict[type[Operation], list[tuple[Equation, Layer]]] = {}

    def run(self, module: ModuleOp) -> int:
        """Rewrite all blocks of tensors; returns how many regions have changed."""
        return sum(self._run_block(block) for block in tensor_blocks(module))

    def _run_block(self, block: Block) -> int:
        changed = 0
        for _ in range(_SWEEPS):
            found = self._candidates(block)
            granted = [one for one in found if not one.missing]
            places: dict[Operation, float] = {op: place for place, op in enumerate(block.ops)} if found else {}
            done = 0
            for region in _regions(block, granted):
                done += _Region(self, block, region, places).rewrite()
            changed += done
            if not done:
                break
        if recorder() is not None and (refused := [one for one in self._candidates(block) if one.missing]):
            order: dict[Operation, float] = {op: place for place, op in enumerate(block.ops)}
            for region in _regions(block, refused):
                _Region(self, block, region, order).explain([one for one in refused if one.root in region])
        return changed

    def _candidates(self, block: Block) -> list[Found]:
        """Where an equation holds in the block as it is."""
        listens, ranges = recorder() is not None, ValueRanges(self._ctx)
        found: list[Found] = []
        for op in list(block.ops):
            rules = self.rules_for(type(op))
            for rule, root in rules:
                if not root.may_be(op) or (not listens and not self._rights.issuperset(rule.rights)):
                    continue
                probe = _Probe(block)
                for m, value in matches(rule, root, EqualSearch(op, self._ctx, probe, ranges), 1):
                    missing = tuple(sorted({*rule.rights, *m.needed} - self._rights))
                    if value is not None and (listens or not missing):
                        ops = tuple(one for one in (*m.ops, *m.shared) if one.parent is block)
                        found.append(Found(rule, op, missing, ops))
                probe.erase_unused(())
        return found

    def rules_for(self, kind: type[Operation]) -> list[tuple[Equation, Layer]]:
        found = self._by_class.get(kind)
        if found is None:
            found = [(one, root) for one, root in self._all if issubclass(kind, root.kinds)]
            self._by_class[kind] = found
        return found

    def saturated(self, ops: Sequence[Operation], rights: Collection[str]) -> EGraph:
        """The e-graph of some layers with all that is equal by rights."""
        graph, ranges = EGraph(ops), ValueRanges(self._ctx)
        most, done = len(ops) * (1 + _MAX_NODES), set[tuple[object, ...]]()
        for _ in range(_ITERATIONS):
            before = graph.changes
            for op in list(graph.nodes):
                for rule, root in self.rules_for(type(op)):
                    if len(graph.nodes) > most or not set(rights).issuperset(rule.rights):
                        continue
                    search = EqualSearch(op, self._ctx, graph, ranges)
                    for m, value in matches(rule, root, search, _MAX_WAYS, done):
                        if value is not None and set(rights) >= m.needed and graph.merge(op.results[0], value):
                            graph.merged.append((rule.called(), op, value))
            graph.rebuild()
            if graph.changes == before:
                break
        return graph

    def costs(self, block: Block, graph: EGraph) -> Costs:
        """The costs of the layers of a block, and of new ones."""
        return Costs(self._rates, typical_values(block), graph.scratch)

    @property
    def rights(self) -> frozenset[str]:
        return self._rights


def matches(
    rule: Equation, root: Layer, search: EqualSearch, most: int, done: set[tuple[object, ...]] | None = None
) -> list[tuple[EqualMatch, SSAValue | None]]:
    """What an equation gives in each way in which it matches at a node, those that are done before left out."""
    found: list[tuple[EqualMatch, SSAValue | None]] = []

    def keep() -> bool:
        m = EqualMatch(search)
        key = (rule, *m.key())
        if done is None or key not in done:
            if done is not None:
                done.add(key)
            value = outcome_of(rule, m)
            found.append((m, value if isinstance(value, SSAValue) else None))
        return len(found) >= most

    root.match_op(search.root, search, keep)
    return found


class _Probe(EGraph):
    """Knows no equal values: an equation is tried on the network as it is."""

    def __init__(self, block: Block) -> None:
        super().__init__(())
        self._block = block

    def holds(self, op: Operation) -> bool:
        return op.parent is self._block or super().holds(op)

    def values_of(self, value: SSAValue) -> Sequence[SSAValue]:
        return (value,)


def _regions(block: Block, found: Iterable[Found]) -> list[list[Operation]]:
    """Layers around those that equations match, in the order of the block; no layer is in two regions."""
    region_of: dict[Operation, set[Operation]] = {}
    regions: list[set[Operation]] = []
    for one in found:
        around = _around(block, [op for op in one.ops if _is_node(op, block)])
        meeting = {id(region): region for op in around if (region := region_of.get(op)) is not None}
        home = next((region for region in meeting.values() if len(region) + len(around) <= _MAX_OPS), None)
        if home is None:
            home = set[Operation]()
            regions.append(home)
        new = [op for op in around if op not in region_of]
        home.update(new)
        region_of.update(dict.fromkeys(new, home))
    places = {op: place for place, op in enumerate(block.ops)} if regions else {}
    return [sorted(region, key=places.__getitem__) for region in regions[:_MAX_REGIONS] if region]


def _around(block: Block, ops: Sequence[Operation]) -> list[Operation]:
    found = dict.fromkeys(ops)
    edge = list(found)
    for _ in range(_REACH):
        further: dict[Operation, None] = {}
        for op in edge:
            near = [value.owner for value in op.operands]
            uses = [use.operation for use in op.results[0].uses]
            near += uses if len(uses) <= _MAX_READERS else []
            for one in near:
                if isinstance(one, Operation) and _is_node(one, block) and one not in found:
                    further[one] = None
        if len(found) + len(further) > _MAX_OPS:
            break
        found.update(further)
        edge = list(further)
    return list(found)


def _is_node(op: Operation, block: Block) -> bool:
    return isinstance(op, TensorOp) and op.parent is block and len(op.results) == 1 and op.has_trait(Pure)


@dataclass
class _Region:
    """Some layers of a block, which are replaced by others together."""

    home: Saturation
    block: Block
    ops: Sequence[Operation]
    places: dict[Operation, float]
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])

    def __post_init__(self) -> None:
        inside = set(self.ops)
        for op in self.ops:
            if any(use.operation not in inside for use in op.results[0].uses):
                self.outputs.append(op.results[0])

    def rewrite(self) -> bool:
        """Put the cheapest layers in the place of the region's; whether any changed."""
        graph = self.home.saturated(self.ops, self.home.rights)
        search = Extraction(graph, self.home.costs(self.block, graph), self.outputs, self.places)
        before, best = search.before(), search.best()
        if best is None:
            graph.erase_unused(())
        else:
            rules = _used(graph, best)
            _Emission(graph, best, self).run()
            if recorder() is not None:
                last = next((op for op in reversed(best.ops) if op.parent is self.block), self.block.last_op)
                assert last is not None
                applied(last, f"{', '.join(rules)}: saves {_saving(before, best)}")
        return best is not None

    def explain(self, refused: Sequence[Found]) -> None:
        """Say what a right that is missing would save here."""
        for rights in dict.fromkeys(one.missing for one in refused):
            graph = self.home.saturated(self.ops, {*self.home.rights, *rights})
            search = Extraction(graph, self.home.costs(self.block, graph), self.outputs, self.places)
            before, best = search.before(), search.best()
            graph.erase_unused(())
            one = next(one for one in refused if one.missing == rights)
            if best is not None:
                meant = " and ".join(RIGHTS[right].partition(":")[0] for right in rights)
                declined(
                    one.root,
                    f"{_words(one.rule)}: --fastMath={','.join((*sorted(self.home.rights), *rights))} would permit it "
                    f"({meant}), which saves {_saving(before, best)}",
                )


def _used(graph: EGraph, choice: Choice) -> list[str]:
    """The equations whose outcomes have been chosen."""
    chosen = {op.results[0] for op in choice.ops}
    names = (name for name, root, value in graph.merged if root.results[0] not in chosen and _is_read(value, choice))
    return [name.replace("_", " ") for name in dict.fromkeys(names)]


def _is_read(value: SSAValue, choice: Choice) -> bool:
    return any(one is value for one in choice.values.values())


def _words(rule: Equation) -> str:
    return rule.called().replace("_", " ")


def _saving(before: float, best: Choice) -> str:
    return f"{before - best.cost:.3g} of {before:.3g} microseconds by the cost model"


class _Emission:
    """Puts what has been chosen in the place of a region."""

    def __init__(self, graph: EGraph, choice: Choice, region: _Region) -> None:
        self.graph, self.choice, self.region = graph, choice, region
        self._numbers = {value: graph.find(value) for op in choice.ops for value in (*op.operands, *op.results)}
        self._numbers |= {value: graph.find(value) for value in region.outputs}

    def run(self) -> None:
        """Insert new layers in front of the first one that needs them, and erase dead code."""
        values, block = self.choice.values, self.region.block
        chosen, places = set(self.choice.ops), self.region.places
        anchors: dict[Operation, list[SSAValue]] = {}
        for op in self.choice.ops:
            if op.parent is block:
                anchors.setdefault(op, []).extend(values[self._numbers[one]] for one in op.operands)
        for value in self.region.outputs:
            found = values[self._numbers[value]]
            if found is not value:
                assert isinstance(value.owner, Operation)
                anchors.setdefault(value.owner, []).append(found)
        for op in self.choice.ops:
            for index, one in enumerate(op.operands):
                found = values[self._numbers[one]]
                if found is not one:
                    op.operands[index] = found
        self.graph.erase_unused(chosen)
        for anchor in sorted(anchors, key=places.__getitem__):
            for value in anchors[anchor]:
                self._emit(value, anchor)
        for value in self.region.outputs:
            found = values[self._numbers[value]]
            if found is not value:
                found.name_hint = found.name_hint or value.name_hint
                value.replace_uses_with_if(found, lambda use: use.operation not in chosen)
        for op in reversed(self.region.ops):
            if op not in chosen and op.results[0].first_use is None:
                op.detach()
                op.erase()

    def _emit(self, value: SSAValue, anchor: Operation) -> None:
        owner = value.owner
        if not isinstance(owner, Operation) or not self._is_waiting(owner):
            return
        waiting = [owner]
        while waiting:
            op = waiting[-1]
            needed = [one.owner for one in op.operands]
            missing = [one for one in needed if isinstance(one, Operation) and self._is_waiting(one)]
            if missing and op.parent is None:
                waiting += missing
                continue
            waiting.pop()
            if op.parent is None:
                self.region.block.insert_op_before(op, anchor)
                self.region.places[op] = self.region.places[anchor] - 0.5

    def _is_waiting(self, op: Operation) -> bool:
        return op.parent is None and self.graph.holds(op)
