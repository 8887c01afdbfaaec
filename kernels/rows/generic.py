"""Loop nests over rows, one for each op of the family: they fit every shape, type and layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.topk import TopkOp
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows import cumulative, normalization, reduction, softmax, topk

_LOWERED: dict[type[Operation], Callable[[Any, Lowering], bool]] = {
    CumulativeOp: cumulative.lower,
    NormalizationOp: normalization.lower,
    ReductionOp: reduction.lower,
    SoftmaxOp: softmax.lower,
    TopkOp: topk.lower,
}
OPS = tuple(_LOWERED)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: Operation, lowering: Lowering) -> bool:
    return _LOWERED[type(op)](op, lowering)
