"""The loop nest of everything that accumulates over an affine box: reductions and matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from mlirt.dialects.combine import ReduceKind, identity
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import dims, element_name, rank
from mlirt.kernels.lib.builder.kernel_builder import Extent
from mlirt.kernels.lib.epilogue import extra_operands, store_finished
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.nest_words import original_indices
from mlirt.kernels.lib.language.words import Box, constant, extent, parallel, reduction
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.tactics.lowering import Lowering

# Sums of as many elements are sums of parts, of about so many: a lane that adds up more of them rounds too often.
_LONG_SUM, _PART = 32 * 1024, 4 * 1024
# So many parts are one number of the sum.
_GROUP = 64

# Indices that are added along loops.
_Moved = Sequence[tuple[int, Value]]
_Element = Callable[[Sequence[Value], _Moved], Value]

# (one scalar per input, the index along each dimension of the space) -> what is accumulated.
Body = Callable[[Sequence[Value], Sequence[Value]], Value]


@dataclass(frozen=True)
class Accumulation:
    """`result[p..] = epilogue(combine over r.. of body(inputs..), extras..)`; all accesses go over p.. and r.. ."""

    op: MatmulOp | PackedMatmulOp | ReductionOp
    kind: ReduceKind
    reduced: tuple[Dim, ...]
    inputs: Sequence[Affine]
    body: Body
    indices_in_body: frozenset[int] = frozenset()

    @property
    def needed(self) -> frozenset[int]:
        """The dimensions whose indices the regions ask for."""
        return self.indices_in_body | indices_in(self.op.epilogue)


def lower_accumulation(job: Accumulation, family: str, lowering: Lowering) -> None:
    """Launch the kernel of an op."""
    op, output = job.op, job.op.output
    border = rank(output.type)
    kept = (*extra_operands(op, lowering.placements), whole(output, lowering))
    operands = [*job.inputs, *(_stretched(one, len(job.reduced)) for one in kept)]
    k = lowering.kernel(family)
    nest = Nest.of([*dims(output.type), *job.reduced], operands).ordered(-1, 0, border)
    if k.is_cuda:  # neighbouring threads take neighbouring elements
        nest = nest.ordered(0, border)
    nest = collapse(nest, job.needed | lane_axes(output.type), frozenset({border}))
    code = NestCode(k, nest)
    inner = code.split(border)[1]
    is_cut = not k.is_cuda and not job.needed & set(range(border, border + len(job.reduced)))
    cut = _part_axis(job.kind, accumulator_type(op.epilogue), inner) if is_cut else None
    build(k, _accumulate, job, code, border, cut)
    k.finish(op)


@kernel
def _accumulate(job: Accumulation, code: NestCode, border: int, cut: int | None) -> None:
    """`for each p..: combine over r.. of body(inputs); epilogue; store`."""
    type_, count = accumulator_type(job.op.epilogue), len(job.inputs)
    (outer, inner), width = code.split(border), border + len(job.reduced)
    start = constant(identity(job.kind, element_name(type_)), type_)
    for loops in parallel(outer):
        here = code.loops_before(border, loops)

        def element(more: Sequence[Value], moved: _Moved = ()) -> Value:
            at = [*here, *more]
            steps = [[(index, code.step(one, loop)) for loop, index in moved] for one in range(count)]
            indices = original_indices(code, job.needed, at, width) if at else []
            return job.body([code.load(one, at, steps[one]) for one in range(count)], indices)

        if cut is not None:
            total = _sum_of_parts(inner, cut, start, len(here), element)
        else:
            total = reduction(job.kind, Box(inner), start, element) if inner else element([])
        store_finished(job.op.epilogue, code, count, total, here)


def _part_axis(kind: ReduceKind, accumulator: Attribute, extents: Sequence[Dim]) -> int | None:
    """The loop of a long sum that is cut into parts on a CPU; None for others. Threads of a GPU have short sums."""
    length = product(extents)
    if kind is not ReduceKind.ADD or accumulator != f32 or not isinstance(length, int) or length < _LONG_SUM:
        return None
    inner = 1
    for axis in reversed(range(len(extents))):
        size = extents[axis]
        assert isinstance(size, int)  # their product is a number
        inner *= size
        if inner >= _PART:
            return axis
    return None


@kernel
def _sum_of_parts(extents: Sequence[Dim], cut: int, start: Value, depth: int, element: _Element) -> Value:
    """`sum over groups { sum over parts { sum within a part } }`: rounding grows with the longest of them only."""
    size = extents[cut]
    assert isinstance(size, int)
    length = max(1, _PART // math.prod(int(str(one)) for one in extents[cut + 1 :]))
    parts = -(-size // length)

    def part(outer: Sequence[Value], number: Value) -> Value:
        first = number * length

        def within(inner: Sequence[Value]) -> Value:
            return element([*outer, first, *inner[1:]], [(depth + cut, inner[0])])

        return reduction(ReduceKind.ADD, Box([_count(size, first, length), *extents[cut + 1 :]]), start, within)

    def group(at: Sequence[Value]) -> Value:
        first = at[-1] * _GROUP
        over = Box([_count(parts, first, _GROUP)])
        return reduction(ReduceKind.ADD, over, start, lambda inner: part(at[:-1], first + inner[0]))

    if parts <= 2 * _GROUP:
        return reduction(ReduceKind.ADD, Box([*extents[:cut], parts]), start, lambda at: part(at[:-1], at[-1]))
    return reduction(ReduceKind.ADD, Box([*extents[:cut], ceil_div(parts, _GROUP)]), start, group)


@kernel
def _count(size: int, first: Value, most: int) -> Extent:
    """How many from `first` on are one piece."""
    return most if size % most == 0 else min(extent(size) - first, most)


def _stretched(one: Affine, count: int) -> Affine:
    """An access over the kept dimensions as one over the whole space."""
    return Affine(one.value, (*one.steps, *(0,) * count), one.offset)


__all__ = ["Accumulation", "lower_accumulation"]
