"""The loops of a depthwise convolution on a GPU."""

from __future__ import annotations

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.epilogue import extra_operands
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

CHANNEL, ROW = 1, 2


def depthwise_nest(op: ConvolutionOp, lowering: Lowering) -> Nest:
    """Over the results, the last loop along their memory; channels and spatial axes have loops of their own.

    The operands are the input, which stands still along the spatial axes, the extra operands and the result.
    """
    space, places = dims(op.output.type), lowering.placements
    spatial = frozenset(range(ROW, len(space)))
    steps = tuple(0 if axis in spatial else step for axis, step in enumerate(places[op.input].strides))
    operands = [Affine(op.input, steps), *extra_operands(op, places), whole(op.output, lowering)]
    return collapse(Nest.of(space, operands).ordered(-1), frozenset({CHANNEL, *spatial}))


__all__ = ["CHANNEL", "ROW", "depthwise_nest"]
