"""Gathers: each result element reads its indices, then the data where they point, or zero where they point outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, strides
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.nest_words import Coordinate, coordinate_operands, coordinates_of, resolve
from mlirt.kernels.lib.language.words import cast, parallel
from mlirt.kernels.lib.loops.block_lanes import zero
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def lower(op: GatherOp, lowering: Lowering) -> bool:
    """A large table with the numbers of halves is stored as these; elements are widened as they are read."""
    as_halves = lowering.are_halves(op.data)
    lies = strides(op.data.type)[0] if as_halves else lowering.placements[op.data].strides
    indices = lowering.placements[op.indices]
    data_steps, index_steps, axes = _steps(op, lies, indices.strides)
    depth = op.depth if op.mode.data is GatherMode.ND else None
    picks = coordinate_operands(op.indices, indices, index_steps, depth)
    operands = [*picks, Affine(op.data, data_steps), whole(op.output, lowering)]
    k = lowering.kernel("gather")
    memories = {len(picks): k.weights(lowering.packed(op.data, _as_is, as_halves=True), "halves")} if as_halves else {}
    code = NestCode(k, collapse(Nest.of(dims(op.output.type), operands).ordered(-1)), memories)
    sizes, steps = dims(op.data.type), [k.stride(step) for step in lies] if as_halves else k.strides(op.data)
    coordinates, element = coordinates_of(k, sizes, steps, axes), element_of(op.data.type)
    build(k, _gather, code, coordinates, element, value_of(zero(k, element)))
    k.finish(op)
    return True


@kernel
def _gather(code: NestCode, coordinates: Sequence[Coordinate], element: Attribute, outside: Value) -> None:
    """`for each i: j = indices[i]; y[i] = data[i, j] if j is in range else 0`."""
    for loops in parallel(code.extents()):
        here, value = loops[: len(code.nest.groups)], outside
        places, valid = resolve(code, coordinates, here)
        if valid:
            value = code.load(len(coordinates), here, places)
            value = value if value.type == element else cast(value, value.type, element)
        code.store(value, len(coordinates) + 1, here)


def _as_is(table: Array) -> Array:
    return table


def _steps(
    op: GatherOp, data: Sequence[Dim], indices: Sequence[Dim]
) -> tuple[tuple[Dim, ...], tuple[Dim, ...], tuple[int, ...]]:
    """Strides of the data and of the indices over the result's dimensions, and the axes of the data that indices
    name.
    """
    axis, shared = op.axis.value.data, op.elementwise_dims
    if op.mode.data is GatherMode.ELEMENT:
        return (*data[:axis], 0, *data[axis + 1 :]), tuple(indices), (axis,)
    if op.mode.data is GatherMode.ND:
        own = len(indices) - 1 - shared
        tail = data[shared + op.depth :]
        axes = tuple(range(shared, shared + op.depth))
        return (*data[:shared], *(0,) * own, *tail), (*indices[:-1], *(0,) * len(tail)), axes
    own, before, tail = len(indices) - shared, axis - shared, data[axis + 1 :]
    data_steps = (*data[:axis], *(0,) * own, *tail)
    return data_steps, (*indices[:shared], *(0,) * before, *indices[shared:], *(0,) * len(tail)), (axis,)
