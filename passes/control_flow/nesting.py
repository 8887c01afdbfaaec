"""Finds out from the data flow which layers are inside of which loops and branches.

A layer that depends on an iterator, a recurrence or a conditional's input is inside, unless the way leads through an
output of that loop or conditional; what depends on nothing of it is computed outside, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.boundary import symbol_of
from mlirt.dialects.trt.conditional import ConditionOp, IfInputOp, IfOutputOp
from mlirt.dialects.trt.loop import IteratorOp, LoopOutputOp, RecurrenceNextOp, RecurrenceOp, TripLimitKind, TripLimitOp
from mlirt.errors import InvalidModelError
from mlirt.passes.control_flow.boundaries import Boundaries, ConditionalParts

THEN, ELSE = ".then", ".else"
_Scopes = frozenset[str]
_NONE: _Scopes = frozenset()


class Nesting:
    """The scopes around each op of a block: names of loops, and names of conditionals with the side."""

    def __init__(self, block: Block) -> None:
        self.ops = list(block.ops)
        self.boundaries = Boundaries.of(block)
        self._open: dict[SSAValue, _Scopes] = {}
        self._inside: dict[Operation, _Scopes] = {}
        self._borders: dict[str, Sequence[Operation]] = {
            name: parts.all() for name, parts in (*self.boundaries.loops.items(), *self.boundaries.conditionals.items())
        }
        self._visit_all()
        self._around = self._enclosing()
        self._sides = {name: self._side_of_ops(parts) for name, parts in self.boundaries.conditionals.items()}
        self._check_results()

    def path(self, op: Operation) -> tuple[str, ...]:
        """The scopes around an op, the outermost first."""
        scopes = self._closure(self._inside[op] | self._around_border(op))
        for name in sorted(self.boundaries.conditionals):
            if name not in scopes and op in self._sides[name] and not self._is_border(op, name):
                scopes |= {name} | self._around[name]
        ordered = sorted(scopes, key=lambda name: (len(self._around[name]), name))
        return tuple(self._with_side(name, op) for name in ordered)

    def _around_border(self, op: Operation) -> _Scopes:
        """The scopes around the conditional that an op is a border of, though the op itself may depend on none."""
        if isinstance(op, ConditionOp | IfInputOp | IfOutputOp):
            return self._around[symbol_of(op.conditional)]
        return _NONE

    # What an op depends on.

    def _visit_all(self) -> None:
        """An output is where all borders of its loop or conditional are, which may be known only after it."""
        self._needed: dict[str, _Scopes] = dict.fromkeys(self._borders, _NONE)
        while True:
            for op in self.ops:
                self._visit(op)
            needed = {
                name: _NONE.union(*(self._inside[op] for op in borders)) - {name}
                for name, borders in self._borders.items()
            }
            if needed == self._needed:
                return
            self._needed = needed

    def _visit(self, op: Operation) -> None:
        inside = _NONE.union(*(self._open.get(value, _NONE) for value in op.operands))
        if isinstance(op, IteratorOp | RecurrenceOp):
            inside |= {symbol_of(op.loop)}
        elif isinstance(op, RecurrenceNextOp):
            inside |= {op.loop_name}
        elif isinstance(op, TripLimitOp) and op.kind.data is TripLimitKind.WHILE:
            inside |= {symbol_of(op.loop)}
        elif isinstance(op, LoopOutputOp):
            inside = (inside | self._needed[symbol_of(op.loop)]) - {symbol_of(op.loop)}
        elif isinstance(op, IfOutputOp):
            inside = (inside | self._needed[symbol_of(op.conditional)]) - {symbol_of(op.conditional)}
        self._inside[op] = inside
        entered = {symbol_of(op.conditional)} if isinstance(op, IfInputOp) else set[str]()
        for result in op.results:
            self._open[result] = inside | entered

    # Which loop or conditional is in which.

    def _enclosing(self) -> dict[str, _Scopes]:
        """For each loop and conditional those around it; raises where they are not cleanly nested."""
        direct = self._needed
        around = {name: _reachable(name, direct) for name in direct}
        for name, outer in around.items():
            if name in outer:
                others = sorted(one for one in outer if name in around[one] and one != name)
                guilty = self._meeting(name, others[0]) if others else self._borders[name][0]
                raise InvalidModelError(
                    f"layer {name_of(guilty)}: @{name} and @{others[0] if others else name} are not nested: each uses "
                    "what is inside of the other; pass values on through their outputs"
                )
            chain = sorted(outer, key=lambda one: len(around[one]))
            for shorter, longer in pairwise(chain):
                if shorter not in around[longer]:
                    guilty = self._meeting(shorter, longer)
                    raise InvalidModelError(
                        f"layer {name_of(guilty)} uses what is inside of @{shorter} and of @{longer}, and neither is "
                        "in the other; pass values on through their outputs"
                    )
        return around

    def _meeting(self, one: str, other: str) -> Operation:
        """The first op that depends on the inside of both."""
        return next((op for op in self.ops if {one, other} <= self._inside[op]), self.ops[0])

    def _closure(self, scopes: _Scopes) -> _Scopes:
        return scopes.union(*(self._around[name] for name in scopes))

    # Which side of a conditional an op is on.

    def _side_of_ops(self, parts: ConditionalParts) -> dict[Operation, str]:
        """The side of each op that a conditional computes only where it is taken."""
        sides: dict[Operation, str] = {}
        for side in (THEN, ELSE):
            starts = [output.then if side == THEN else output.otherwise for output in parts.outputs]
            for op in self._lazy(starts, parts.name):
                if sides.setdefault(op, side) != side:
                    raise InvalidModelError(
                        f"layer {name_of(op)} is used by both branches of the conditional @{parts.name}: a branch must "
                        "not use the inside of the other; compute it before the conditional's inputs"
                    )
        return sides

    def _lazy(self, starts: Iterable[SSAValue], name: str) -> list[Operation]:
        """The ops behind values that depend on the inputs of a conditional."""
        found: dict[Operation, None] = {}
        todo = list(starts)
        while todo:
            op = todo.pop().owner
            if not isinstance(op, Operation) or op in found or not self._belongs(op, name):
                continue
            found[op] = None
            todo += op.operands
            todo += [value for border in self._borders_of(op) for value in border.operands]
        return list(found)

    def _belongs(self, op: Operation, name: str) -> bool:
        """Whether an op is computed inside of a conditional: it, or the loop that it is in, depends on its inputs."""
        inside = self._inside[op]
        return name in inside or any(name in self._around[one] for one in (*inside, *self._own_scope(op)))

    def _own_scope(self, op: Operation) -> list[str]:
        if isinstance(op, LoopOutputOp):
            return [symbol_of(op.loop)]
        return [symbol_of(op.conditional)] if isinstance(op, IfOutputOp) else []

    def _borders_of(self, op: Operation) -> Sequence[Operation]:
        """The ops that an output stands for too: the limits and back edges of its loop, the condition of its branch."""
        if isinstance(op, LoopOutputOp | RecurrenceOp | IteratorOp):
            parts = self.boundaries.loops[symbol_of(op.loop)]
            return [*parts.limits, *parts.nexts]
        return self.boundaries.conditionals[symbol_of(op.conditional)].conditions if isinstance(op, IfOutputOp) else []

    def _is_border(self, op: Operation, name: str) -> bool:
        return isinstance(op, IfOutputOp | IfInputOp) and symbol_of(op.conditional) == name

    def _with_side(self, name: str, op: Operation) -> str:
        if name not in self.boundaries.conditionals:
            return name
        return name + self._side(name, op)

    def _side(self, name: str, op: Operation) -> str:
        sides = self._sides[name]
        if op in sides:
            return sides[op]
        if isinstance(op, ConditionOp | IfInputOp):
            for output in self.boundaries.conditionals[symbol_of(op.conditional)].outputs:
                if output in sides:
                    return sides[output]
        for other in self.ops:  # a back edge or limit is where the rest of its loop is
            if other in sides and self._inside[op] & (self._inside[other] | set(self._own_scope(other))) - {name}:
                return sides[other]
        for border in (use.operation for result in op.results for use in result.uses):
            if border in sides:
                return sides[border]
        return THEN

    def _check_results(self) -> None:
        for op in self.ops:
            if isinstance(op, ReturnOp):
                for value in op.operands:
                    scopes = self._open.get(value, _NONE)
                    if scopes and isinstance(value.owner, Operation):
                        raise InvalidModelError(
                            f"layer {name_of(value.owner)} is inside of @{min(scopes)} and cannot be an output of the "
                            "network: take it out through an output of the loop or conditional"
                        )


def _reachable(name: str, direct: dict[str, _Scopes]) -> _Scopes:
    found: set[str] = set()
    todo = list(direct[name])
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += direct[one]
    return frozenset(found)
