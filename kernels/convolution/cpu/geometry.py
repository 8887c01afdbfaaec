"""A convolution of blocked tensors in numbers, as far as register tiles can compute it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType, Signedness, f32, i8, i32
from xdsl.ir import Attribute

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import channels, dims, element_of, halo, halo_fill
from mlirt.kernels.convolution.cpu.merged_parts import Parts
from mlirt.kernels.convolution.cpu.needed_taps import PaddedAxis
from mlirt.kernels.lib.cpu.register_tiles.tile_code import TileCode
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.tactics.lowering import Lowering

_ROW, _PIXEL = 2, 3
_UI8: Attribute = IntegerType(8, Signedness.UNSIGNED)
_FOUR = 4
# Int8 products of which a float32 holds the sum exactly.
_EXACT_TAPS = 2**24 // (255 * 128)


@dataclass(frozen=True)
class Geometry:
    """`groups` groups of `blocks_in` blocks of the input give `blocks_out` blocks of the result each.

    `depth` channels of the input lie side by side: those of a block, or one of a plain tensor. A step of the sum takes
    `word` of them at once: four where they are bytes. Depthwise, a block is a group. `steps` are the input's strides,
    `start` is where the window of the first pixel starts. `parts` are those of a group that spare blocks of the input.
    `padded` are the rows and columns whose windows may read zeros alone with some of their taps.
    """

    lanes: int
    depth: int
    word: int
    groups: int
    blocks_in: int
    blocks_out: int
    is_depthwise: bool
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    steps: tuple[Dim, ...]
    start: Dim
    parts: Parts | None = None
    padded: tuple[PaddedAxis | None, PaddedAxis | None] = (None, None)

    @property
    def sum_steps(self) -> int:
        """The steps of the sum of an element of the result."""
        each = 1 if self.is_depthwise else self.depth // self.word
        return self.window[0] * self.window[1] * self.blocks_in * each

    def needed(self, columns: int) -> float:
        """Which part of all products with panels of so many blocks there is to compute."""
        panels = -(-self.blocks_out // columns)
        return 1.0 if self.parts is None else self.parts.needed(panels, columns * self.lanes, self.depth)


def geometry_of(op: ConvolutionOp, lowering: Lowering) -> Geometry | None:
    """The numbers of an op; None where register tiles cannot compute it."""
    lanes = lowering.target.vector_bits // 32
    if op.transposed.value.data or not is_blocked(op.output.type) or dims(op.output.type)[-1] != lanes:
        return None
    word = _word(op)
    if word is None or lowering.known(op.kernel) is None:
        return None
    sizes, spatial = [size for size in dims(op.kernel.type) if isinstance(size, int)], op.spatial()
    if len(sizes) != 4 or not _has_halo(op):
        return None
    outputs, inputs, *window = sizes
    depth, groups = _depth(op), op.groups.value.data
    is_depthwise = depth == lanes and inputs == 1 and groups == outputs == channels(op.input.type) and groups > 1
    if depth % word or (is_depthwise and word > 1 and window[0] * window[1] > _EXACT_TAPS):
        return None
    if is_depthwise:
        groups, inputs, outputs = -(-groups // lanes), lanes, -(-groups // lanes) * lanes
    if groups > 1 and (outputs // groups % lanes or inputs % depth):
        return None
    steps = lowering.placements[op.input].strides
    return Geometry(
        lanes=lanes,
        depth=depth,
        word=word,
        groups=groups,
        blocks_in=-(-inputs // depth),
        blocks_out=-(-(outputs // groups) // lanes),
        is_depthwise=is_depthwise,
        window=(window[0], window[1]),
        stride=(spatial[0][0], spatial[1][0]),
        dilation=(spatial[0][1], spatial[1][1]),
        steps=steps,
        start=steps[_ROW] * -spatial[0][2] + steps[_PIXEL] * -spatial[1][2],
        parts=_parts(op, inputs, outputs // groups, depth, lanes),
        padded=_padded(op, (window[0], window[1])),
    )


def _padded(op: ConvolutionOp, window: tuple[int, int]) -> tuple[PaddedAxis | None, PaddedAxis | None]:
    """The axes whose windows reach into padding, where that holds zeros."""
    if op.padding_value.value.data:
        return None, None
    lengths = dims(op.input.type)[_ROW : _PIXEL + 1]
    rows, columns = (
        PaddedAxis(name, length, pre, taps, stride, dilation) if pre or post else None
        for name, length, taps, (stride, dilation, pre, post) in zip(
            ("rows", "columns"), lengths, window, op.spatial(), strict=True
        )
    )
    return rows, columns


def _parts(op: ConvolutionOp, inputs: int, outputs: int, depth: int, lanes: int) -> Parts | None:
    """The parts of a group; None where each of its blocks depends on all blocks of the input anyway."""
    count = op.merged_groups.value.data
    parts = Parts(count, inputs // count, outputs // count)
    spares = count > 1 and parts.needed(-(-outputs // lanes), lanes, depth) < 1
    return parts if spares else None


def _word(op: ConvolutionOp) -> int | None:
    """How many channels a step of the sum takes; None for elements that no tile multiplies."""
    elements = element_of(op.input.type), element_of(op.kernel.type), accumulator_type(op.epilogue)
    if elements == (_UI8, i8, i32):
        return _FOUR
    return 1 if elements == (f32, f32, f32) else None


def _depth(op: ConvolutionOp) -> int:
    size = dims(op.input.type)[-1] if is_blocked(op.input.type) else 1
    assert isinstance(size, int)
    return size


def _has_halo(op: ConvolutionOp) -> bool:
    """Whether the input has cells with the padding value wherever windows reach beyond it."""
    cells = halo(op.input.type) or (0, 0)
    if any(cells) and halo_fill(op.input.type) != op.padding_value.value.data:
        return False
    pads = [(pre, post) for _, _, pre, post in op.spatial()]
    return all(0 <= pad <= border for pair, border in zip(pads, cells, strict=True) for pad in pair)


def is_flat(geometry: Geometry, code: TileCode, length: Dim) -> bool:
    """Whether the windows are points, and the rows of all operands lie behind each other, so that they can be one."""
    is_point = geometry.window == geometry.stride == (1, 1)
    return is_point and _results_are_flat(code, length) and geometry.steps[_ROW] == geometry.steps[_PIXEL] * length


def flat_step(geometry: Geometry, code: TileCode, rows: Dim, length: Dim) -> Dim | None:
    """The distance between the windows of neighbouring pixels where all pixels of an image are one row; else None.

    So it is with a single row, with rows of one pixel, and where the windows of a row start behind those of the row
    before it, as all operands of the epilogue then have to lie.
    """
    row_step = geometry.steps[_ROW] * geometry.stride[0]
    pixel_step = geometry.steps[_PIXEL] * geometry.stride[1]
    if rows == 1:
        return pixel_step
    if not _results_are_flat(code, length):
        return None
    if length == 1:
        return row_step
    return pixel_step if row_step == pixel_step * length else None


def _results_are_flat(code: TileCode, length: Dim) -> bool:
    """Whether the rows of what is read and written by the epilogue lie behind each other, whose index nothing needs."""
    operands = [one.steps for one in (*code.extras, code.out)]
    needs_rows = bool({_ROW, _PIXEL} & indices_in(code.op.epilogue))
    return not needs_rows and all(steps[_ROW] == steps[_PIXEL] * length for steps in operands)
