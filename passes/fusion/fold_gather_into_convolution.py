"""A gather of channels becomes the order in which the convolution before it computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.gathered_channels import gathered_channels
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_CHANNEL = iteration(1)

# Products with zeros for each element of the result that take as long as to gather it.
_MAX_SPARED_CHANNELS = 32


@dataclass(frozen=True)
class FoldGatherIntoConvolutionPass(RulePass):
    """Select the channels of a convolution's kernel and bias, in place of those of its result.

    The convolution has one group and constant weights, nothing else reads its result, and what its epilogue reads
    along channels is constant. Each channel is computed as before, so that results stay equal to the last bit; channels
    that the gather leaves out are not computed any more. Where the group was merged of several, kernels leave out
    products with zeros as long as the channels of each stand together: a gather is not worth many of them.

    Before:

        %c = fused.convolution %x, %k, %b {..} : (.., tensor<6x8x1x1xf32>, tensor<6xf32>) -> tensor<1x6x8x8xf32>
        %y = fused.gather %c, %channels {axis = 1 : i64} : (..) -> tensor<1x6x8x8xf32>

    After:

        %y = fused.convolution %x, %kc, %bc {..} : (.., tensor<6x8x1x1xf32>, tensor<6xf32>) -> tensor<1x6x8x8xf32>
    """

    name = "fold-gather-into-convolution"

    @rule(op(GatherOp, data=op(ConvolutionOp).named("convolution")).named("gather"))
    def fold(self, m: Match, ctx: Context, gather: GatherOp, convolution: ConvolutionOp) -> Outcome:
        store = weights_of(ctx)
        channels = gathered_channels(gather, store)
        if channels is None:
            return "it does not gather whole channels by known numbers"
        if (reason := _obstacle(convolution, channels)) is not None:
            return reason
        extras = [
            _selected(value, access.indices().index(_CHANNEL), channels, store) if _moves(access) else value
            for value, access in _extras(convolution)
        ]
        made = ConvolutionOp.create(
            operands=[convolution.input, _selected(convolution.kernel, 0, channels, store), *extras],
            result_types=[gather.output.type],
            properties={**convolution.properties, "merged_groups": IntegerAttr(1, i64)},
            attributes=dict(convolution.attributes),
            regions=[convolution.detach_region(convolution.epilogue)],
        )
        return m.insert(made, before=convolution)


def _obstacle(convolution: ConvolutionOp, channels: Sequence[int]) -> str | None:
    """Why a convolution cannot compute the channels in that order, as a remark."""
    if convolution.groups.value.data != 1 or convolution.transposed.value.data:
        return "the channels of {convolution} are computed in groups"
    if _spared(convolution) > _MAX_SPARED_CHANNELS:
        return "{convolution} leaves out the zeros between its groups, as their channels stand together"
    if len(set(channels)) < len(channels):
        return "a channel is taken twice"
    if any(isinstance(inner, IndexOp) for inner in convolution.epilogue.block.ops):
        return "what {convolution} computes depends on the position"
    moved = [(value, access) for value, access in _extras(convolution) if _moves(access)]
    if not all(isinstance(value.owner, ConstantOp) for value in (convolution.kernel, *(value for value, _ in moved))):
        return "{convolution} reads an operand along channels that is not constant"
    fits = all(_along_channels(access) == [_CHANNEL] for _, access in moved)
    return None if fits else "{convolution} does not read an operand channel by channel"


def _spared(convolution: ConvolutionOp) -> int:
    """How many products of an element of the result are with zeros between groups."""
    parts, (_, *sizes) = convolution.merged_groups.value.data, dims(convolution.kernel.type)
    each = prod(size for size in sizes if isinstance(size, int))
    return each - each // parts


def _extras(convolution: ConvolutionOp) -> list[tuple[SSAValue, AccessAttr]]:
    return list(zip(convolution.extras, convolution.access, strict=True))


def _along_channels(access: AccessAttr) -> list[Dim]:
    """The indices that change from channel to channel."""
    return [index for index in access.indices() if symbols(_CHANNEL) <= symbols(index)]


def _moves(access: AccessAttr) -> bool:
    return bool(_along_channels(access))


def _selected(value: SSAValue, axis: int, channels: Sequence[int], store: WeightStore) -> SSAValue:
    """A constant with the channels that the gather selects, beside the one it is made from."""
    import numpy as np

    owner = value.owner
    assert isinstance(owner, ConstantOp)
    assert owner.parent is not None
    array = np.ascontiguousarray(owner.array(store).take(channels, axis))
    made = ConstantOp.from_array(array, store, f"{value.name_hint or 'constant'} of gathered channels", owner.location)
    owner.parent.insert_op_after(made, owner)
    return made.output
