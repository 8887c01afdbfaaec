"""Resizing on a GPU that repeats each element: a thread reads some neighbours once and writes all their copies.

parallel (n, c, row, some columns) { load the columns; for each copy of the row { store the columns, each repeated } }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.interpolation import ResizeKind
from mlirt.dialects.symbolic import Dim, floor_div
from mlirt.dialects.symbolic import product as product_of
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.language import Value, build, builder, kernel
from mlirt.kernels.lib.language.simt_words import Access, element_at, fragment, load_fragment, store_fragment
from mlirt.kernels.lib.language.words import extent, parallel, place, static_range, stride
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ResizeOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_MAX_COPIES = 16  # of an element
_THREADS = 1  # times those that a device should have at least: that a launch should have
_WORD = 4  # bytes that a thread should write at least


@dataclass(frozen=True)
class Repetition:
    """The loops over the input and where they lead in both tensors, the innermost along neighbours in memory.

    `copies` are the steps in the result between the copies of an element, without those along neighbours, of which
    there are `repeats`. A thread writes `wide` neighbours at a time.
    """

    nest: Nest
    copies: tuple[Dim, ...]
    repeats: int
    wide: int

    @property
    def width(self) -> int:
        """Neighbours of the input that a thread has: the fewest whose copies fill what it writes."""
        return self.wide // gcd(self.wide, self.repeats)


def lower(op: ResizeOp, lowering: Lowering) -> bool:
    found = _repetition(op, lowering)
    if found is None:
        return False
    k = lowering.kernel("resize")
    build(k, _repeat, op, found)
    k.finish(op)
    return True


@kernel
def _repeat(op: ResizeOp, found: Repetition) -> None:
    """A thread reads `width` neighbours and writes `repeats` copies of each, `wide` at a time."""
    width, wide, repeats = found.width, found.wide, found.repeats
    (source, target), (*before, last) = found.nest.operands, found.nest.extents
    for loops in parallel([*before, floor_div(last, width)]):
        at = [*loops[:-1], loops[-1] * width]
        read = load_fragment(builder().bits(op.input), _index(source, at), Access(static_range(width), wide=width > 1))
        elements = [element_at(read, number) for number in static_range(width)]
        start, memory = _index(target, at), builder().bits(op.output)
        for first in static_range(0, width * repeats, wide):
            values = fragment([elements[(first + number) // repeats] for number in static_range(wide)])
            for copy in found.copies:
                store_fragment(values, memory, start + extent(copy + first), Access(static_range(wide), wide=wide > 1))


@kernel
def _index(one: Affine, at: Sequence[Value]) -> Value:
    """The number of an element, by its place in the nest."""
    return sum([index * stride(step) for index, step in zip(at, one.steps, strict=True)], place(0))


def _repetition(op: ResizeOp, lowering: Lowering) -> Repetition | None:
    """How the input is repeated; None where it is not, or where neighbours cannot be read and written together."""
    axes = range(rank(op.input.type))
    factors = [_factor(op, axis) for axis in axes]
    if None in factors or is_bool(element_of(op.input.type)):
        return None
    times = [factor or 1 for factor in factors]
    before, after = whole(op.input, lowering).steps, whole(op.output, lowering).steps
    inner = [axis for axis in axes if before[axis] == after[axis] == 1 and dims(op.input.type)[axis] != 1]
    if len(inner) != 1 or not 1 < prod(times) <= _MAX_COPIES:
        return None
    moved = tuple(step * factor for step, factor in zip(after, times, strict=True))
    nest = Nest.of(dims(op.input.type), [Affine(op.input, before), Affine(op.output, moved)]).ordered(1)
    nest = collapse(nest, frozenset(inner))
    outer = [axis for axis in axes if axis not in inner]
    copies: list[Dim] = []
    for numbers in product(*(range(times[axis]) for axis in outer)):
        copies.append(sum((number * after[axis] for number, axis in zip(numbers, outer, strict=True)), start=0))
    found = Repetition(nest, tuple(copies), times[inner[0]], 1)
    return _widened(found, op, [before[axis] for axis in outer], [after[axis] for axis in outer], lowering)


def _factor(op: ResizeOp, axis: int) -> int | None:
    """How often each element stands along an axis of the result; None where they do not all stand equally often."""
    import numpy as np

    before, after = dims(op.input.type)[axis], dims(op.output.type)[axis]
    if op.is_copied(axis):
        return 1
    if op.kind.data is not ResizeKind.NEAREST or not isinstance(before, int) or not isinstance(after, int):
        return None
    if before == 0 or after % before:
        return None
    how, scale = op.resampling(axis), op.scale(axis, before, after)
    index, _ = how.taps(before, after, scale)
    repeats = np.array_equal(index[:, 0], np.arange(after) // (after // before))
    return after // before if repeats and not how.outside(before, after, scale).any() else None


def _widened(found: Repetition, op: ResizeOp, before: list[Dim], after: list[Dim], lowering: Lowering) -> Repetition:
    """The same with as many neighbours as an access moves, fewer where there is little to do."""
    wide = min(widest_access(op.input, before, lowering), widest_access(op.output, after, lowering))
    elements = typical(product_of(dims(op.output.type)), typical_values(lowering.block))
    least = max(1, _WORD // byte_width(element_of(op.input.type)))
    threads = _THREADS * lowering.target.gpu.moves.threads
    while wide > least and elements < wide * threads * len(found.copies):
        wide //= 2
    while wide > 1 and not is_multiple(found.nest.extents[-1], replace(found, wide=wide).width):
        wide //= 2
    return replace(found, wide=wide)


__all__ = ["lower"]
