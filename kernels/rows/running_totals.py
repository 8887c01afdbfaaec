"""What running sums and products combine with: on each target, in each kernel."""

from __future__ import annotations

from xdsl.ir import Attribute

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.kernels.lib.language.combine_words import Combiner, combiner_of

_KINDS = {CumulativeKind.SUM: ReduceKind.ADD, CumulativeKind.PROD: ReduceKind.MUL}


def totals_of(op: CumulativeOp, wide: Attribute) -> Combiner:
    """The combine of an op, in the type that its totals have."""
    return combiner_of(_KINDS[op.kind.data], wide)
