"""The boundary layers of each loop and conditional of a block, and whether each has what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation

from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.boundary import symbol_of
from mlirt.dialects.trt.conditional import ConditionOp, IfInputOp, IfOutputOp
from mlirt.dialects.trt.loop import (
    IteratorOp,
    LoopOutputOp,
    RecurrenceNextOp,
    RecurrenceOp,
    TripLimitKind,
    TripLimitOp,
)
from mlirt.errors import InvalidModelError


@dataclass
class LoopParts:
    """The layers at the border of one loop."""

    name: str
    limits: list[TripLimitOp] = field(default_factory=list[TripLimitOp])
    iterators: list[IteratorOp] = field(default_factory=list[IteratorOp])
    recurrences: list[RecurrenceOp] = field(default_factory=list[RecurrenceOp])
    nexts: list[RecurrenceNextOp] = field(default_factory=list[RecurrenceNextOp])
    outputs: list[LoopOutputOp] = field(default_factory=list[LoopOutputOp])

    def limit(self, kind: TripLimitKind) -> TripLimitOp | None:
        return next((limit for limit in self.limits if limit.kind.data is kind), None)

    def all(self) -> list[Operation]:
        return [*self.limits, *self.iterators, *self.recurrences, *self.nexts, *self.outputs]

    def check(self) -> None:
        label = f"loop @{self.name}"
        if not self.limits:
            raise InvalidModelError(f"{label} has no trip limit: add one that counts, or one with a condition")
        for kind in TripLimitKind:
            same = [limit for limit in self.limits if limit.kind.data is kind]
            if len(same) > 1:
                raise InvalidModelError(f"{label} has {len(same)} trip limits of the kind {kind}: {names(same)}")
        for recurrence in self.recurrences:
            given = [one for one in self.nexts if one.recurrence is recurrence.output]
            if len(given) != 1:
                raise InvalidModelError(
                    f"layer {name_of(recurrence)}: a recurrence of {label} needs one second input, got {len(given)}"
                )


@dataclass
class ConditionalParts:
    """The layers at the border of one conditional."""

    name: str
    conditions: list[ConditionOp] = field(default_factory=list[ConditionOp])
    inputs: list[IfInputOp] = field(default_factory=list[IfInputOp])
    outputs: list[IfOutputOp] = field(default_factory=list[IfOutputOp])

    def all(self) -> list[Operation]:
        return [*self.conditions, *self.inputs, *self.outputs]

    def check(self) -> None:
        label = f"conditional @{self.name}"
        if len(self.conditions) != 1:
            raise InvalidModelError(f"{label} needs exactly one condition, got {len(self.conditions)}")
        if not self.outputs:
            raise InvalidModelError(f"{label} needs at least one output")


@dataclass
class Boundaries:
    """All loops and conditionals of a block, by their symbols."""

    loops: dict[str, LoopParts] = field(default_factory=dict[str, LoopParts])
    conditionals: dict[str, ConditionalParts] = field(default_factory=dict[str, ConditionalParts])

    @staticmethod
    def of(block: Block) -> Boundaries:
        """Collect and check them; raises `InvalidModelError` that names the layer at fault."""
        found = Boundaries()
        for op in block.ops:
            found._take(op)
        for parts in (*found.loops.values(), *found.conditionals.values()):
            parts.check()
        for name in found.loops.keys() & found.conditionals.keys():
            raise InvalidModelError(f"@{name} is the name of a loop and of a conditional")
        return found

    def _take(self, op: Operation) -> None:
        if isinstance(op, TripLimitOp):
            self._loop(symbol_of(op.loop)).limits.append(op)
        elif isinstance(op, IteratorOp):
            self._loop(symbol_of(op.loop)).iterators.append(op)
        elif isinstance(op, RecurrenceOp):
            self._loop(symbol_of(op.loop)).recurrences.append(op)
        elif isinstance(op, RecurrenceNextOp):
            self._loop(op.loop_name).nexts.append(op)
        elif isinstance(op, LoopOutputOp):
            self._loop(symbol_of(op.loop)).outputs.append(op)
        elif isinstance(op, ConditionOp):
            self._conditional(symbol_of(op.conditional)).conditions.append(op)
        elif isinstance(op, IfInputOp):
            self._conditional(symbol_of(op.conditional)).inputs.append(op)
        elif isinstance(op, IfOutputOp):
            self._conditional(symbol_of(op.conditional)).outputs.append(op)

    def _loop(self, name: str) -> LoopParts:
        return self.loops.setdefault(name, LoopParts(name))

    def _conditional(self, name: str) -> ConditionalParts:
        return self.conditionals.setdefault(name, ConditionalParts(name))


def names(ops: Iterable[Operation]) -> str:
    """The layers that ops stand for, for messages."""
    return ", ".join(name_of(op) for op in ops)
