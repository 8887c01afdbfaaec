"""Loop nests that move elements, one for each op of the family: they fit every shape, type and layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.interleave import InterleaveOp
from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.fused.scatter import ScatterOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.kernels.copy import concat, gather, pad, reformat, scatter, view
from mlirt.kernels.lib.tactics.lowering import Lowering

_LOWERED: dict[type[Operation], Callable[[Any, Lowering], bool]] = {
    ConcatOp: concat.lower,
    GatherOp: gather.lower,
    InterleaveOp: concat.lower,
    PadOp: pad.lower,
    ReformatOp: reformat.lower,
    ScatterOp: scatter.lower,
    ViewOp: view.lower,
}
OPS = tuple(_LOWERED)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: Operation, lowering: Lowering) -> bool:
    return _LOWERED[type(op)](op, lowering)
