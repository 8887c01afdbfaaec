"""Strided copies of whole tensors, between any two placements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.layout import Layout
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, stored_bytes, strides
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.words import parallel, static_range
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.stream import Stream
from mlirt.kernels.lib.tactics.lowering import Lowering


def copy(
    value: SSAValue, target: Placement, layer: Operation, lowering: Lowering, source: Placement | None = None
) -> None:
    """Launch a copy of a tensor to another place, from `source` where that is not where the tensor belongs."""
    copy_to_each(value, [target], layer, lowering, source)


def copy_to_each(
    value: SSAValue,
    targets: Sequence[Placement],
    layer: Operation,
    lowering: Lowering,
    source: Placement | None = None,
) -> None:
    """Launch a copy of a tensor to several places that lie alike: it is read once."""
    source = source or lowering.placements[value]
    sizes, element = dims(value.type), element_of(value.type)
    if element_count(value.type) == 0:
        return
    nest = collapse(Nest.of(sizes, [Affine(value, place.strides) for place in (source, *targets)]).ordered(1))
    if lowering.target.kind == "cuda":
        is_transposed = all([_transpose_tiles(lowering, nest, source, target, layer) for target in targets])
    else:
        is_transposed = _transpose_squares(lowering, nest, [source, *targets], layer)
    if not is_transposed:
        k = lowering.kernel("copy")
        build(k, _copy, _code(k, nest, [source, *targets], element))
        k.finish(layer)


def _code(k: KernelBuilder, nest: Nest, places: Sequence[Placement], element: Attribute) -> NestCode:
    """The loads of the first operand of a nest and the stores of the others, at such places."""
    memories = [k.memory(one.buffer, element, one.offset, one.part) for one in places]
    named = [k.named(one, "output" if number else "input") for number, one in enumerate(memories)]
    return NestCode(k, nest, dict(enumerate(named)))


@kernel
def _copy(code: NestCode) -> None:
    for loops in parallel(code.extents()):
        element = code.load(0, loops)
        for number in static_range(1, len(code.nest.operands)):
            code.store(element, number, loops)


def _transpose_squares(lowering: Lowering, nest: Nest, places: Sequence[Placement], layer: Operation) -> bool:
    """On a CPU, a copy between places that lie across each other, in registers."""
    from mlirt.kernels.lib.cpu.transposed_squares import TransposedSquares, cross_loop, moved_as

    element, cross = moved_as(element_of(nest.operands[0].value.type)), cross_loop(nest, 0)
    if cross is None:
        return False
    k = lowering.kernel("copy")
    squares = TransposedSquares(_code(k, nest, places, element), 0, cross, element, lowering.target)
    build(k, squares.move)
    k.finish(layer)
    return True


def _transpose_tiles(lowering: Lowering, nest: Nest, source: Placement, target: Placement, layer: Operation) -> bool:
    """On a GPU, a copy between places that lie across each other, by way of shared memory."""
    from mlirt.kernels.lib.cuda.transposition.transposed_plan import THREADS, find
    from mlirt.kernels.lib.cuda.transposition.transposed_tiles import TransposedTiles

    element = element_of(nest.operands[0].value.type)
    places = zip((source, target), nest.operands[:2], strict=True)
    reader, writer = (Stream(place.buffer, element, place.offset, one.steps) for place, one in places)
    plan = find(nest.extents, [reader], writer)
    if plan is None:
        return False
    k = lowering.kernel("copy")
    build(k, TransposedTiles(k, plan).write, lambda scalars: scalars[0])
    k.finish(layer, grid=[plan.blocks, 1, 1], block=[THREADS])
    return True


def copy_dense(value: SSAValue, layer: Operation, lowering: Lowering) -> SSAValue:
    """Launch a copy of a tensor to a new buffer where it lies densely; returns that buffer."""
    sizes = dims(value.type)
    buffer = lowering.placements.scratch(element_count(value.type) * byte_width(element_of(value.type)))
    copy(value, dense(buffer, sizes), layer, lowering)
    return buffer


def copy_as_typed(value: SSAValue, layer: Operation, lowering: Lowering) -> SSAValue:
    """Launch a copy of a tensor to a new buffer where it lies as its type says, without gaps; returns that buffer."""
    buffer = lowering.placements.scratch(stored_bytes(value.type))
    copy(value, Placement(buffer, 0, strides(value.type)[0]), layer, lowering)
    return buffer


def dense(buffer: SSAValue, sizes: tuple[Dim, ...]) -> Placement:
    """The placement of a tensor that fills a buffer in row-major order."""
    return Placement(buffer, 0, Layout.row_major(sizes).strides())
