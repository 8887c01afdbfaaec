"""Groups of a few channels are computed together, as whole vectors of channels with zeros between the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.options import option

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# Vectors multiply so many zeros in the time in which loops over single channels do without them.
_MAX_MERGED_GROUPS = 32


@dataclass(frozen=True)
class MergeConvolutionGroupsPass(ModulePass):
    """Merge as many groups of a convolution of images as make whole vectors of `lanes` channels, or all of them.

    Only constant kernels, and no depthwise ones, which have vectors of groups. `merged_groups` tells kernels which
    products are with zeros.

    Before: `%y = fused.convolution %x, %k {groups = 32, ..} : (1x128x8x8, 128x4x3x3) -> 1x128x8x8`
    After:  `%y = fused.convolution %x, %k' {groups = 8, merged_groups = 4, ..} : (1x128x8x8, 128x16x3x3) -> 1x128x8x8`
    """

    name = "merge-convolution-groups"

    lanes: int = option(16, at_least=1)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = weights_of(ctx)
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ConvolutionOp) and rank(inner.output.type) == 4:
                    self._merge(inner, store)

    def _merge(self, op: ConvolutionOp, store: WeightStore) -> None:
        owner, groups = op.kernel.owner, op.groups.value.data
        outputs, inputs, *_ = dims(op.kernel.type)
        if not isinstance(owner, ConstantOp) or not isinstance(outputs, int) or not isinstance(inputs, int):
            return
        is_depthwise = inputs == 1 and outputs == groups
        count = 1 if op.transposed.value.data or is_depthwise else merged(groups, inputs, outputs // groups, self.lanes)
        if count == 1:
            return
        hint = f"{op.kernel.name_hint or 'kernel'} of merged groups"
        kernel = ConstantOp.from_array(_with_zeros(owner.array(store), groups, count), store, hint, owner.location)
        assert op.parent is not None
        op.parent.insert_op_before(kernel, op)
        op.operands[1] = kernel.output
        op.properties["groups"] = IntegerAttr(groups // count, i64)
        op.properties["merged_groups"] = IntegerAttr(count, i64)


def merged(groups: int, inputs: int, outputs: int, lanes: int) -> int:
    """How many of the groups, with so many channels each, are computed as one; 1 where merging does not help."""
    divisors = [count for count in range(1, groups + 1) if groups % count == 0]
    whole = [count for count in divisors if count * inputs % lanes == 0 and count * outputs % lanes == 0]
    count = (whole or [groups])[0]
    return count if count <= _MAX_MERGED_GROUPS else 1


def _with_zeros(kernel: Array, groups: int, count: int) -> Array:
    """`[k, count * c, r..]` from `[k, c, r..]`: zeros for the inputs of the groups that an output is merged with."""
    import numpy as np

    outputs, inputs, *window = kernel.shape
    split = kernel.reshape(groups // count, count, outputs // groups, inputs, *window)
    result = np.zeros((groups // count, count, outputs // groups, count, inputs, *window), kernel.dtype)
    for position in range(count):
        result[:, position, :, position] = split[:, position]
    return result.reshape(outputs, count * inputs, *window)
