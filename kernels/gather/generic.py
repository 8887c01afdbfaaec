"""Gathers: each result element reads its indices, then the data where they point, or zero where they point outside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, rank, strides
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.loops.block_lanes import zero
from mlirt.kernels.lib.loops.indexed_access import Coordinate, coordinate_operands, resolve
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse, direct
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (GatherOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: GatherOp, lowering: Lowering) -> bool:
    """`parallel (i..) { j = indices[i..]; y[i..] = data[i.., j] if j is in range else 0 }`.

    A large table with the numbers of halves is stored as these; elements are widened as they are read.
    """
    as_halves = lowering.are_halves(op.data)
    lies = strides(op.data.type)[0] if as_halves else lowering.placements[op.data].strides
    indices = lowering.placements[op.indices]
    data_steps, index_steps, axes = _steps(op, lies, indices.strides)
    depth = op.depth if op.mode.data is GatherMode.ND else None
    picks = coordinate_operands(op.indices, indices, index_steps, depth)
    result = direct(op.output, lowering.placements[op.output])
    nest = Nest.of(dims(op.output.type), [*picks, Affine(op.data, data_steps), result]).ordered(-1)
    k = lowering.kernel("gather")
    source, target = len(picks), len(picks) + 1
    table = k.weights(lowering.packed(op.data, _as_it_is, as_halves=True), "halves") if as_halves else None
    code = NestCode(k, collapse(nest), {} if table is None else {source: table})
    sizes, steps = dims(op.data.type), [k.stride(step) for step in lies] if as_halves else k.strides(op.data)
    coordinates = [Coordinate(position, k.size(sizes[axis]), steps[axis]) for position, axis in enumerate(axes)]
    element = element_of(op.data.type)
    outside = zero(k, element)

    def read(here: Sequence[SSAValue], places: Sequence[tuple[SSAValue, Stride]]) -> SSAValue:
        found = code.load(source, here, places)
        return k.scalars(element).cast(found, found.type) if as_halves else found

    with k.parallel(code.extents()) as loops:
        places, valid = resolve(k, code, coordinates, code.loops_before(rank(op.output.type), loops))
        here = code.loops_before(rank(op.output.type), loops)
        code.store(k.guarded(valid, partial(read, here, places), outside), target, here)
    k.finish(op)
    return True


def _as_it_is(table: Array) -> Array:
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
