"""A convolution of blocked tensors in numbers, as far as register tiles can compute it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import channels, dims, element_of, halo
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.reduction_nest import accumulator_of, indices_in
from mlirt.passes.lowering.tile_code import TileCode

_ROW, _PIXEL = 2, 3


@dataclass(frozen=True)
class Geometry:
    """`groups` groups of `blocks_in` blocks of the input give `blocks_out` blocks of the result each.

    `depth` channels of the input lie side by side: those of a block, or one of a plain tensor. Depthwise, a block is a
    group. `steps` are the input's strides, `start` is where the window of the first pixel starts.
    """

    lanes: int
    depth: int
    groups: int
    blocks_in: int
    blocks_out: int
    is_depthwise: bool
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    steps: tuple[Dim, ...]
    start: Dim


def geometry_of(op: ConvolutionOp, lowering: Lowering) -> Geometry | None:
    """The numbers of an op; None where register tiles cannot compute it."""
    lanes = lowering.target.vector_bits // 32
    types = (op.input.type, op.kernel.type, op.output.type)
    if op.transposed.value.data or not is_blocked(op.output.type) or dims(op.output.type)[-1] != lanes:
        return None
    if {*map(element_of, types), accumulator_of(op.epilogue)} != {f32} or lowering.constant_array(op.kernel) is None:
        return None
    sizes, spatial = [size for size in dims(op.kernel.type) if isinstance(size, int)], op.spatial()
    if len(sizes) != 4 or not _has_halo(op):
        return None
    outputs, inputs, *window = sizes
    depth, groups = lanes if is_blocked(op.input.type) else 1, op.groups.value.data
    is_depthwise = depth == lanes and inputs == 1 and groups == outputs == channels(op.input.type) and groups > 1
    if is_depthwise:
        groups, inputs, outputs = -(-groups // lanes), lanes, -(-groups // lanes) * lanes
    if groups > 1 and (outputs // groups % lanes or inputs % depth):
        return None
    steps = lowering.placements[op.input].strides
    return Geometry(
        lanes=lanes,
        depth=depth,
        groups=groups,
        blocks_in=-(-inputs // depth),
        blocks_out=-(-(outputs // groups) // lanes),
        is_depthwise=is_depthwise,
        window=(window[0], window[1]),
        stride=(spatial[0][0], spatial[1][0]),
        dilation=(spatial[0][1], spatial[1][1]),
        steps=steps,
        start=steps[_ROW] * -spatial[0][2] + steps[_PIXEL] * -spatial[1][2],
    )


def _has_halo(op: ConvolutionOp) -> bool:
    """Whether the input has zero cells wherever windows reach beyond it."""
    cells = halo(op.input.type) or (0, 0)
    pads = [(pre, post) for _, _, pre, post in op.spatial()]
    return all(0 <= pad <= border for pair, border in zip(pads, cells, strict=True) for pad in pair)


def is_flat(geometry: Geometry, code: TileCode, length: Dim) -> bool:
    """Whether the rows of all operands lie behind each other, so that they can be one."""
    operands = [one.steps for one in (*code.extras, code.out)]
    rows = [(geometry.steps[_ROW], geometry.steps[_PIXEL]), *((steps[_ROW], steps[_PIXEL]) for steps in operands)]
    is_point = geometry.window == geometry.stride == (1, 1)
    needs_rows = bool({_ROW, _PIXEL} & indices_in(code.op.epilogue))
    return is_point and not needs_rows and all(row == pixel * length for row, pixel in rows)
