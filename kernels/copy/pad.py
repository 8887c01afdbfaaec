"""Padding and slices beyond the border: each result element finds its place in the input."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.words import Elements, clamp, constant, extent, floor_div, is_inside, parallel, stride
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: PadOp, lowering: Lowering) -> bool:
    nest, moved = moved_nest(op, lowering)
    k = lowering.kernel("pad")
    build(k, _pad, NestCode(k, nest), moved, op)
    k.finish(op)
    return True


def moved_nest(op: PadOp, lowering: Lowering) -> tuple[Nest, tuple[int, ...]]:
    """The loops over the input and the result, and the dimensions along which that is no copy, with own loops."""
    sizes, results = dims(op.input.type), dims(op.output.type)
    steps = zip(op.pre.dims(), op.strides(), sizes, results, strict=True)
    moved = tuple(
        axis for axis, (pre, stride, size, result) in enumerate(steps) if (pre, stride) != (0, 1) or size != result
    )
    operands = [whole(op.input, lowering), whole(op.output, lowering)]
    return collapse(Nest.of(results, operands).ordered(1), frozenset(moved)), moved


@kernel
def _pad(code: NestCode, moved: Sequence[int], op: PadOp) -> None:
    """`for each i: y[i] = x[i * stride - pre]`, resolved by the mode, or the fill."""
    pads = {axis: extent(op.pre.dims()[axis]) for axis in moved}
    strides = {axis: stride(op.strides()[axis]) for axis in moved}
    lengths = {axis: extent(dims(op.input.type)[axis]) for axis in moved}
    fill = fill_of(op)
    for loops in parallel(code.extents()):
        here, value, inside = list(loops[: len(code.nest.groups)]), fill, True
        for axis in moved:
            loop = code.nest.groups.index((axis,))
            wanted = loops[loop] * strides[axis] - pads[axis]
            here[loop] = resolved(wanted, lengths[axis], op.mode.data)
            if op.mode.data is PadMode.CONSTANT:
                inside = inside and is_inside(wanted, lengths[axis])
        if inside:
            value = code.load(0, here)
        code.store(value, 1, loops)


@kernel
def fill_of(op: PadOp) -> Value:
    """What stands outside of the input."""
    if op.fill is None:
        return constant(0, element_of(op.input.type))
    return Elements(op.fill)[[0] * rank(op.fill.type)]


@kernel
def resolved(place: Value, length: Value, mode: PadMode) -> Value:
    """A position in the input; in the constant mode it may lie outside."""
    if mode is PadMode.CONSTANT:
        return place
    if mode is PadMode.EDGE:
        return clamp(place, length)
    if mode is PadMode.WRAP:
        return _modulo(place, length)
    period = max((length - 1) * 2, 1)
    folded = _modulo(place, period)
    return folded if folded < length else period - folded


@kernel
def _modulo(place: Value, length: Index) -> Value:
    """The remainder that is never negative."""
    return place - floor_div(place, length) * length


@kernel
def resolve(place: Value, length: Value, mode: PadMode) -> tuple[Value, bool]:
    """A position in the input, and whether it is valid."""
    return resolved(place, length, mode), mode is not PadMode.CONSTANT or is_inside(place, length)
