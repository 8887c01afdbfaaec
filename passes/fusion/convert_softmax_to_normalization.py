"""Turns softmax of long rows into a normalisation, whose kernels keep rows that no block can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import YieldOp, element_types
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.reduction import ReductionKind
from mlirt.dialects.fused.scalar_builder import Scalars, compute_type, yield_as
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.passes.fusion.scalar_bodies import append
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
    """The same results."""
    inputs, axis = [op.input, *op.extras], op.axis.value.data
    whole = AccessAttr.of([iteration(d) for d in range(len(dims(op.input.type)))])
    given, wide = element_types(inputs), compute_type(element_of(op.input.type))
    widest = _Region(given, wide)
    widest.end(widest.number(0))
    kept = _Region([wide, *given], wide)
    kept.end(kept.block.args[0])
    summand = _Region([*given, wide], wide)
    summand.end(summand.exponential())
    total = _Region([wide, *given, wide], wide)
    total.end(total.block.args[0])
    body = _Region([*given, wide, wide], wide)
    body.end_with_share(op)
    normalization = NormalizationOp(
        inputs,
        [whole, *op.access],
        [axis],
        [ReductionKind.MAX, ReductionKind.ADD],
        op.output.type,
        body.region,
        [one.region for one in (widest, kept, summand, total)],
    )
    normalization.attributes.update(op.attributes)
    normalization.location = op.location
    return normalization


class _Region:
    """A scalar region that takes an element of the row first, and the totals before it last."""

    def __init__(self, arguments: Sequence[Attribute], wide: Attribute) -> None:
        self.block, self.wide = Block(arg_types=arguments), wide
        self.region = Region(self.block)
        self.scalars = Scalars(self.block, wide)

    def number(self, position: int) -> SSAValue:
        """An argument in the type of the computation."""
        argument = self.block.args[position]
        return self.scalars.cast(argument, argument.type)

    def difference(self, largest: int = -1) -> SSAValue:
        """The element less the largest one, which is the argument at a position."""
        return self.scalars.sub(self.number(0), self.block.args[largest])

    def exponential(self, largest: int = -1) -> SSAValue:
        """The exponential of the difference."""
        return self.scalars.function(math.ExpOp, self.difference(largest))

    def end(self, result: SSAValue) -> None:
        """Yield a number."""
        self.block.add_op(YieldOp(operands=[[result]]))

    def end_with_share(self, op: SoftmaxOp) -> None:
        """Yield the share or its logarithm, or what the epilogue makes of it; the totals are the last arguments."""
        s, total = self.scalars, self.block.args[-1]
        if op.log.value.data:
            share = s.sub(self.difference(-2), s.function(math.LogOp, total))
        else:
            share = s.div(self.exponential(-2), total)
        if op.epilogue is None:
            yield_as(s, share, element_of(op.output.type))
            return
        self.end(share)
        append(self.block, op.epilogue, [share, *self.block.args[1 : 1 + len(op.extras)]])
