"""Scatters: a copy of the data, then a second launch that applies the updates; those of one place in order.

Where the network says that no two updates have one place, all are applied at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.fused.scatter import ScatterOp
from mlirt.dialects.indexing import ScatterMode, ScatterReduction
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_count, element_of, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.copying import copy
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.combine_words import combiner_of
from mlirt.kernels.lib.language.nest_words import Coordinate, NestOperand, coordinate_operands, coordinates_of, resolve
from mlirt.kernels.lib.language.words import extent, parallel
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: ScatterOp, lowering: Lowering) -> bool:
    copy_data(op, lowering)
    if element_count(op.updates.type) == 0:
        return True
    k = lowering.kernel("scatter")
    build(k, _scatter, *_nest(k, op, lowering), op)
    k.finish(op)
    return True


def copy_data(op: ScatterOp, lowering: Lowering) -> None:
    """A launch that copies the data, unless the updates are applied in its place."""
    if lowering.placements[op.data] != lowering.placements[op.output]:
        copy(op.data, lowering.placements[op.output], op, lowering)


def computed_type(op: ScatterOp) -> Attribute:
    """The type in which updates are combined with what is there; that of the elements where they are only written."""
    element = element_of(op.data.type)
    return element if op.reduction.data is ScatterReduction.NONE else compute_type(element)


def combined(op: ScatterOp, before: Callable[[], Value], update: Value) -> Value:
    """What becomes of an element; it is read only where that matters."""
    kind = op.reduction.data
    if kind is ScatterReduction.NONE:
        return update
    return combiner_of(ReduceKind[kind.name], computed_type(op)).of(before(), update)


@kernel
def _scatter(code: NestCode, border: int, coordinates: Sequence[Coordinate], op: ScatterOp) -> None:
    """`for each place that no index tells apart: for updates, in order: y[index] = combine(y[index], update)`."""
    wide = computed_type(op)
    updates, y = (NestOperand(code, len(coordinates) + operand, wide) for operand in (0, 1))
    outer, ordered = code.split(border)
    lengths = [extent(length) for length in ordered]
    for loops in parallel(outer):

        def apply(at: Sequence[Any]) -> None:
            places, valid = resolve(code, coordinates, at)
            if valid:
                target = y.moved(places)
                target[at] = combined(op, lambda: target[at], updates[at])

        _in_order(lengths, code.loops_before(border, loops), apply)


@kernel
def _in_order(lengths: Sequence[Value], at: Sequence[Any], apply: Callable[[Sequence[Any]], None]) -> None:
    """`apply` at all indices up to these lengths, one after the other."""
    if lengths:
        for i in range(lengths[0]):
            _in_order(lengths[1:], [*at, i], apply)
    else:
        apply(at)


def _nest(k: KernelBuilder, op: ScatterOp, lowering: Lowering) -> tuple[NestCode, int, list[Coordinate]]:
    """The nest over the updates, with the dimensions whose updates may meet at the end, from the returned border on."""
    places = lowering.placements
    target, updates, indices = places[op.output].strides, places[op.updates].strides, places[op.indices].strides
    sizes = dims(op.updates.type)
    if op.mode.data is ScatterMode.ELEMENT:
        axis = op.axis.value.data
        meeting, axes, depth = [axis], [axis], None
        target_steps: list[Dim] = [0 if other == axis else target[other] for other in range(len(sizes))]
        index_steps = list(indices)
    else:
        depth, own = op.depth, rank(op.indices.type) - 1
        meeting, axes = list(range(own)), list(range(depth))
        target_steps = [*(0 for _ in range(own)), *target[depth:]]
        index_steps = [*indices[:-1], *(0 for _ in sizes[own:])]
    order, border = list(range(len(sizes))), len(sizes)
    if not op.unique_indices.value.data:
        order, border = [*(axis for axis in order if axis not in meeting), *meeting], border - len(meeting)
    picks = coordinate_operands(op.indices, places[op.indices], [index_steps[axis] for axis in order], depth)
    operands = [
        *picks,
        Affine(op.updates, tuple(updates[axis] for axis in order)),
        Affine(op.output, tuple(target_steps[axis] for axis in order)),
    ]
    space = [sizes[axis] for axis in order]
    code = NestCode(k, collapse(Nest.of(space, operands), borders=frozenset({border})))
    return code, border, coordinates_of(k, dims(op.output.type), k.strides(op.output), axes)
