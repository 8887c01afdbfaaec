"""Poolings of large windows whose input has its channels innermost and whose results are planes.

each thread: combine the windows of a channel at some pixels, neighbouring threads those of neighbouring channels
write down what they come to in shared memory; wait
each thread: the epilogue and the store of some channels at a pixel, neighbouring threads those of neighbouring pixels
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import f32

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import dims, row_length, strides
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.epilogue import extra_operands, store_finished
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.combine_words import combiner_of
from mlirt.kernels.lib.language.simt_words import block_id, shared_memory, sync_threads, thread_id
from mlirt.kernels.lib.language.words import Tensor, extent, place, split, static_range
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.pooled_planes import has_result_tiles
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.generic import mean

OPS = (WindowOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 30

_SIDE, _WARPS = 32, 8  # channels and pixels of a tile, and warps of its block


def lower(op: WindowOp, lowering: Lowering) -> bool:
    is_across = strides(op.input.type)[0][1] == 1 and strides(op.output.type)[0][-1] == 1
    if not has_result_tiles(op) or not is_across or row_length(op.output.type) or accumulator_type(op.epilogue) != f32:
        return False
    k, space = lowering.kernel("window"), dims(op.output.type)
    sizes = [space[0], ceil_div(space[1], _SIDE), ceil_div(product(space[2:]), _SIDE)]
    build(k, _tile, op, _results(op, k, lowering), sizes)
    k.finish(op, grid=[product(sizes), 1, 1], block=[_SIDE * _WARPS])
    return True


def _results(op: WindowOp, k: KernelBuilder, lowering: Lowering) -> NestCode:
    """The extra operands and the result over the dimensions of the result."""
    operands = [*extra_operands(op, lowering.placements), whole(op.output, lowering)]
    return NestCode(k, Nest.of(dims(op.output.type), operands))


@kernel
def _tile(op: WindowOp, code: NestCode, sizes: Sequence[Dim]) -> None:
    """The results of a tile of channels and pixels."""
    space, thread = dims(op.output.type), thread_id()
    lane, warp = thread % _SIDE, thread // _SIDE
    image, of_channels, of_pixels = split(block_id(), sizes)
    channels, pixels = extent(space[1]), extent(product(space[2:]))
    shared = shared_memory("tile", _SIDE * (_SIDE + 1), f32)
    channel = of_channels * _SIDE + lane
    for number in static_range(_SIDE // _WARPS):
        row = number * _WARPS + warp
        pixel = of_pixels * _SIDE + row
        if channel < channels and pixel < pixels:
            shared[row * (_SIDE + 1) + lane] = _window(op, [image, channel], split(pixel, space[2:]))
    sync_threads()
    pixel = of_pixels * _SIDE + lane
    for number in static_range(_SIDE // _WARPS):
        row = number * _WARPS + warp
        channel = of_channels * _SIDE + row
        if channel < channels and pixel < pixels:
            total = shared[lane * (_SIDE + 1) + row]
            store_finished(op.epilogue, code, 0, total, [image, channel, *split(pixel, space[2:])])


@kernel
def _window(op: WindowOp, image: Sequence[Value], pixel: Sequence[Value]) -> Value:
    """What the elements of a window are combined to."""
    x, sizes, steps = Tensor(op.input), integers(op.window), integers(op.stride)
    combiner = combiner_of(ReduceKind.MAX if op.kind.data is WindowKind.MAX else ReduceKind.ADD, f32)
    first = [one * step for one, step in zip(pixel, steps, strict=True)]
    (total,) = combiner.neutral
    *outer, length = sizes
    for number in range(prod(outer)):
        line = split(place(number), outer) if outer else ()
        for tap in static_range(length):
            taps = [*line, tap]
            places = [start + at * apart for start, at, apart in zip(first, taps, integers(op.dilation), strict=True)]
            total = combiner.of(total, x[*image, *places])
    return mean(total, [prod(sizes)], f32) if op.kind.data is WindowKind.AVERAGE else total
