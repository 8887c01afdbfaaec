"""Turns softmax of long rows into a normalisation, whose kernels keep rows that no block can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import element_types
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.reduction import ReductionKind
from mlirt.dialects.fused.scalar_builder import Scalars, compute_type, region_of
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.passes.fusion.scalar_bodies import append, tidy
from mlirt.passes.options import option
from mlirt.passes.remarks import applied


@dataclass(frozen=True)
class ConvertSoftmaxToNormalizationPass(ModulePass):
    """Write a `fused.softmax` of rows of more than `longer_than` elements as a `fused.normalization`.

    The largest element and the sum of exponentials are reductions of the row, the share and the epilogue its body.
    Rows of unknown length stay.

    Before:

        %y = fused.softmax %x {axis = 1 : i64} : (tensor<4x100000xf32>) -> tensor<4x100000xf32>

    After:

        %y = fused.normalization %x {axes = [1], kinds = [max, add]} {exp(x - m) / t} {x} {m} {exp(x - m)} {t}
    """

    name = "convert-softmax-to-normalization"

    longer_than: int = option(65536, at_least=1)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, SoftmaxOp) and self._is_long(inner):
                    normalization = _normalization(inner)
                    Rewriter.replace_op(inner, normalization)
                    applied(normalization)

    def _is_long(self, op: SoftmaxOp) -> bool:
        length = dims(op.input.type)[op.axis.value.data]
        return isinstance(length, int) and length > self.longer_than


def _normalization(op: SoftmaxOp) -> NormalizationOp:
    """The same results: the reductions' regions take an element of the row first, and the totals before them last."""
    inputs, axis = [op.input, *op.extras], op.axis.value.data
    whole = AccessAttr.of([iteration(d) for d in range(len(dims(op.input.type)))])
    given, wide = element_types(inputs), compute_type(element_of(op.input.type))
    stages = [
        region_of(given, wide, wide, lambda s, x: x[0]),
        region_of([wide, *given], wide, wide, lambda s, x: x[0]),
        region_of([*given, wide], wide, wide, lambda s, x: s.function(math.ExpOp, s.sub(x[0], x[-1]))),
        region_of([wide, *given, wide], wide, wide, lambda s, x: x[0]),
    ]
    result = element_of(op.output.type) if op.epilogue is None else wide
    body = region_of([*given, wide, wide], result, wide, _log_share if op.log.value.data else _share)
    if op.epilogue is not None:
        last = body.block.last_op
        assert last is not None
        append(body.block, op.epilogue, [last.operands[0], *body.block.args[1 : 1 + len(op.extras)]])
    for region in (*stages, body):
        tidy(region.block)
    kinds = [ReductionKind.MAX, ReductionKind.ADD]
    normalization = NormalizationOp(inputs, [whole, *op.access], [axis], kinds, op.output.type, body, stages)
    normalization.attributes.update(op.attributes)
    normalization.location = op.location
    return normalization


def _share(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
    return s.div(s.function(math.ExpOp, s.sub(x[0], x[-2])), x[-1])


def _log_share(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
    return s.sub(s.sub(x[0], x[-2]), s.function(math.LogOp, x[-1]))
