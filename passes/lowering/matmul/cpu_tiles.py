"""Matrix products of float32 on register tiles: rows of the left operand against panels of the right one."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirt.passes.lowering.lowering import Lowering

OPS: tuple[type[Operation], ...] = ()
TARGETS = frozenset({"cpu"})
PRIORITY = 20


def lower(op: Operation, lowering: Lowering) -> bool:
    return False
