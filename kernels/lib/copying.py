"""Strided copies of whole tensors, between any two placements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, stored_bytes, strides
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.words import Strided, parallel
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, collapse
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
    operands = [Affine(value, source.strides), Affine(value, targets[0].strides)]
    nest = collapse(Nest.of(sizes, operands).ordered(1))
    if all([_transpose(lowering, nest, source, target, layer) for target in targets]):
        return
    k = lowering.kernel("copy")
    reader = k.named(k.memory(source.buffer, element, source.offset, source.part), "input")
    writers = [k.named(k.memory(one.buffer, element, one.offset, one.part), "output") for one in targets]
    read_steps, write_steps = ([k.stride(step) for step in one.steps] for one in nest.operands)
    build(k, _copy, nest.extents, Strided(reader, read_steps), [Strided(writer, write_steps) for writer in writers])
    k.finish(layer)


@kernel
def _copy(extents: Sequence[Dim], x: Strided, results: Sequence[Strided]) -> None:
    for loops in parallel(list(extents) or [1]):
        at = loops[: len(extents)]
        element = x[at]
        for y in results:
            y[at] = element


def _transpose(lowering: Lowering, nest: Nest, source: Placement, target: Placement, layer: Operation) -> bool:
    """On a GPU, a copy between places that lie across each other, by way of shared memory."""
    k = lowering.kernel("copy")
    if not k.is_cuda:
        return False
    from mlirt.kernels.lib.cuda.transposition.transposed_plan import THREADS, find
    from mlirt.kernels.lib.cuda.transposition.transposed_tiles import TransposedTiles

    element = element_of(nest.operands[0].value.type)
    places = zip((source, target), nest.operands, strict=True)
    reader, writer = (Stream(place.buffer, element, place.offset, one.steps) for place, one in places)
    plan = find(nest.extents, [reader], writer)
    if plan is None:
        return False
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
    return Placement(buffer, 0, tuple(product(sizes[k + 1 :]) for k in range(len(sizes))))
