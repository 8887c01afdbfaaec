"""Scatters: a copy of the data, then a second launch that applies the updates; those of one place in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.fused.scalar_builder import Scalars, compute_type
from mlirt.dialects.fused.scatter import ScatterOp
from mlirt.dialects.indexing import ScatterMode, ScatterReduction
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_count, element_of, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.copying import copy
from mlirt.kernels.lib.loops.indexed_access import Coordinate, coordinate_operands, resolve
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ScatterOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: ScatterOp, lowering: Lowering) -> bool:
    """`parallel (places that no index tells apart) { for updates, in order: y[index] = combine(y[index], update) }`."""
    if lowering.placements[op.data] != lowering.placements[op.output]:
        copy(op.data, lowering.placements[op.output], op, lowering)
    if element_count(op.updates.type) == 0:
        return True
    k = lowering.kernel("scatter")
    code, border, coordinates = _nest(k, op, lowering)
    outer, ordered = code.split(border)
    extents = [k.extent(size) for size in ordered]
    element = element_of(op.data.type)
    wide = compute_type(element) if op.reduction.data is not ScatterReduction.NONE else element
    update, target = len(coordinates), len(coordinates) + 1
    with k.parallel(outer) as loops:

        def apply(at: list[SSAValue]) -> None:
            places, valid = resolve(k, code, coordinates, at)

            def write() -> None:
                value = code.read(update, wide, at)
                if op.reduction.data is not ScatterReduction.NONE:
                    value = _combine(k.scalars(wide), op.reduction.data, code.read(target, wide, at, places), value)
                code.write(value, wide, target, at, places)

            write() if valid is None else k.when(valid, write)

        _for_each(k, extents, code.loops_before(border, loops), apply)
    k.finish(op)
    return True


def _for_each(
    k: KernelBuilder, extents: Sequence[SSAValue], at: list[SSAValue], apply: Callable[[list[SSAValue]], None]
) -> None:
    if not extents:
        apply(at)
        return

    def step(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        _for_each(k, extents[1:], [*at, i], apply)
        return []

    k.loop(extents[0], [], step)


def _combine(s: Scalars, kind: ScatterReduction, old: SSAValue, new: SSAValue) -> SSAValue:
    rules = {
        ScatterReduction.ADD: s.add,
        ScatterReduction.MUL: s.mul,
        ScatterReduction.MAX: s.max,
        ScatterReduction.MIN: s.min,
    }
    return rules[kind](old, new)


def _nest(k: KernelBuilder, op: ScatterOp, lowering: Lowering) -> tuple[NestCode, int, list[Coordinate]]:
    """The nest over the updates, with the dimensions whose updates may meet at the end, from the returned border on."""
    places = lowering.placements
    target, updates, indices = places[op.output].strides, places[op.updates].strides, places[op.indices].strides
    sizes = dims(op.updates.type)
    if op.mode.data is ScatterMode.ELEMENT:
        axis = op.axis.value.data
        order = [*(other for other in range(len(sizes)) if other != axis), axis]
        border, axes, depth = len(sizes) - 1, [axis], None
        target_steps: list[Dim] = [0 if other == axis else target[other] for other in order]
        index_steps: list[Dim] = [indices[other] for other in order]
    else:
        depth, own = op.depth, rank(op.indices.type) - 1
        tail = list(range(own, len(sizes)))
        order = [*tail, *range(own)]
        border, axes = len(tail), list(range(depth))
        target_steps = [*target[depth:], *(0 for _ in range(own))]
        index_steps = [*(0 for _ in tail), *indices[:-1]]
    picks = coordinate_operands(op.indices, places[op.indices], index_steps, depth)
    operands = [
        *picks,
        Affine(op.updates, tuple(updates[axis] for axis in order)),
        Affine(op.output, tuple(target_steps)),
    ]
    space = [sizes[axis] for axis in order]
    code = NestCode(k, collapse(Nest.of(space, operands), borders=frozenset({border})))
    lengths, strides = dims(op.output.type), k.strides(op.output)
    coordinates = [Coordinate(position, k.size(lengths[axis]), strides[axis]) for position, axis in enumerate(axes)]
    return code, border, coordinates
