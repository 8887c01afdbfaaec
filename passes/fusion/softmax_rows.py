"""A softmax as a normalisation: the largest element and the sum of exponentials are reductions of the row."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import element_types
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.scalar_builder import Scalars, compute_type, region_of
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.passes.fusion.scalar_bodies import append, tidy


def normalization_of(softmax: SoftmaxOp) -> NormalizationOp:
    """The same results: the reductions' regions take an element of the row first, and the totals before them last."""
    inputs, axis = [softmax.input, *softmax.extras], softmax.axis.value.data
    whole = AccessAttr.of([iteration(d) for d in range(len(dims(softmax.input.type)))])
    given, wide = element_types(inputs), compute_type(element_of(softmax.input.type))
    stages = [
        region_of(given, wide, wide, lambda s, x: x[0]),
        region_of([wide, *given], wide, wide, lambda s, x: x[0]),
        region_of([*given, wide], wide, wide, lambda s, x: s.function(math.ExpOp, s.sub(x[0], x[-1]))),
        region_of([wide, *given, wide], wide, wide, lambda s, x: x[0]),
    ]
    result = element_of(softmax.output.type) if softmax.epilogue is None else wide
    body = region_of([*given, wide, wide], result, wide, _log_share if softmax.log.value.data else _share)
    if softmax.epilogue is not None:
        last = body.block.last_op
        assert last is not None
        append(body.block, softmax.epilogue, [last.operands[0], *body.block.args[1 : 1 + len(softmax.extras)]])
    for region in (*stages, body):
        tidy(region.block)
    kinds = [ReduceKind.MAX, ReduceKind.ADD]
    normalization = NormalizationOp(inputs, [whole, *softmax.access], [axis], kinds, softmax.output.type, body, stages)
    normalization.attributes.update(softmax.attributes)
    return normalization


def _share(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
    return s.div(s.function(math.ExpOp, s.sub(x[0], x[-2])), x[-1])


def _log_share(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
    return s.sub(s.sub(x[0], x[-2]), s.function(math.LogOp, x[-1]))


__all__ = ["normalization_of"]
