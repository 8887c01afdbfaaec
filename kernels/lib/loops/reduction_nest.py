"""The loop nest of everything that accumulates over an affine box: reductions and matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.reduction import ReductionKind, neutral
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import dims, element_name, rank
from mlirt.kernels.lib.builder.kernel_builder import Extent, Stride
from mlirt.kernels.lib.loops.block_lanes import LaneMask, lane_axes, number
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

# Sums of as many elements are sums of parts, of about so many: a lane that adds up more of them rounds too often.
_LONG_SUM, _PART = 32 * 1024, 4 * 1024
# So many parts are one number of the sum.
_GROUP = 64

# Indices that are added along loops.
_Moved = Sequence[tuple[int, SSAValue]]
_Element = Callable[[Sequence[SSAValue], _Moved], SSAValue]

# (kernel, one scalar per input, the index along each dimension of the space) -> what is accumulated.
Body = Callable[[KernelBuilder, list[SSAValue], list[SSAValue]], SSAValue]


@dataclass(frozen=True)
class Accumulation:
    """`result[p..] = epilogue(combine over r.. of body(inputs..), extras..)`; all accesses go over p.. and r.. ."""

    kind: ReductionKind
    reduced: tuple[Dim, ...]
    inputs: Sequence[Affine]
    extras: Sequence[Affine]
    result: Affine
    body: Body
    epilogue: Region
    indices_in_body: frozenset[int] = frozenset()


def lower_accumulation(op: Operation, job: Accumulation, family: str, lowering: Lowering) -> None:
    """`parallel (p..) { reduce (r..) { load; body }; epilogue; store }`."""
    output = job.result.value
    kept, border = dims(output.type), rank(output.type)
    needed = job.indices_in_body | indices_in(job.epilogue)
    operands = [*job.inputs, *(_stretched(one, len(job.reduced)) for one in (*job.extras, job.result))]
    space = [*kept, *job.reduced]
    k = lowering.kernel(family)
    nest = Nest.of(space, operands).ordered(-1, 0, border)
    if k.is_cuda:  # neighbouring threads take neighbouring elements
        nest = nest.ordered(0, border)
    nest = collapse(nest, frozenset(needed | lane_axes(output.type)), frozenset({border}))
    code = NestCode(k, nest)
    accumulator = job.epilogue.block.args[0].type
    init = number(k, neutral(job.kind, element_name(accumulator)), accumulator)
    outer, inner = code.split(border)
    with k.parallel(outer) as loops:
        here = code.loops_before(border, loops)

        def element(more: Sequence[SSAValue], moved: _Moved = ()) -> SSAValue:
            at = [*here, *more]
            scalars = [code.load(position, at, _steps(code, position, moved)) for position in range(len(job.inputs))]
            indices = [code.original(axis, at) if axis in needed else at[0] for axis in range(len(space))] if at else []
            return job.body(k, scalars, indices)

        cut = None if needed & set(range(border, len(space))) else _part_axis(k, job.kind, accumulator, inner)
        if cut is not None:
            total = _sum_of_parts(k, inner, cut, init, len(here), element)
        else:
            total = k.reduce(ReduceKind(job.kind.value), inner, init, element) if inner else element([])
        extras = [code.load(len(job.inputs) + position, here) for position in range(len(job.extras))]
        indices = [code.original(axis, here) if axis in needed else loops[0] for axis in range(border)]
        (value,) = k.inline(job.epilogue, [total, *extras], indices)
        mask = LaneMask(k, output.type, lambda axis: code.original(axis, here))
        code.store(mask.apply(value), len(operands) - 1, here)
    k.finish(op)


def _part_axis(k: KernelBuilder, kind: ReductionKind, accumulator: Attribute, extents: Sequence[Dim]) -> int | None:
    """The loop of a long sum on a CPU that is cut into parts; None for others. Threads of a GPU have short sums."""
    if k.is_cuda or kind is not ReductionKind.ADD or accumulator != f32:
        return None
    length = product(extents)
    if not isinstance(length, int) or length < _LONG_SUM:
        return None
    inner = 1
    for axis in reversed(range(len(extents))):
        size = extents[axis]
        assert isinstance(size, int)  # their product is a number
        inner *= size
        if inner >= _PART:
            return axis
    return None


def _sum_of_parts(
    k: KernelBuilder, extents: Sequence[Dim], cut: int, init: SSAValue, depth: int, element: _Element
) -> SSAValue:
    """`sum over groups { sum over parts { sum within a part } }`: rounding grows with the longest of them only."""
    size = extents[cut]
    assert isinstance(size, int)
    length = max(1, _PART // math.prod(int(str(extent)) for extent in extents[cut + 1 :]))
    parts = -(-size // length)

    def part(outer: Sequence[SSAValue], number: SSAValue) -> SSAValue:
        start = k.mul(number, length)

        def within(inner: list[SSAValue]) -> SSAValue:
            return element([*outer, start, *inner[1:]], [(depth + cut, inner[0])])

        return k.reduce(ReduceKind.ADD, [_count(k, size, start, length), *extents[cut + 1 :]], init, within)

    def group(at: list[SSAValue]) -> SSAValue:
        start = k.mul(at[-1], _GROUP)
        count = _count(k, parts, start, _GROUP)
        return k.reduce(ReduceKind.ADD, [count], init, lambda inner: part(at[:-1], k.add(start, inner[0])))

    if parts <= 2 * _GROUP:
        return k.reduce(ReduceKind.ADD, [*extents[:cut], parts], init, lambda at: part(at[:-1], at[-1]))
    return k.reduce(ReduceKind.ADD, [*extents[:cut], ceil_div(parts, _GROUP)], init, group)


def _count(k: KernelBuilder, size: int, start: SSAValue, most: int) -> Extent:
    """How many from `start` on are one piece."""
    return most if size % most == 0 else k.min(k.sub(k.size(size), start), most)


def _steps(code: NestCode, operand: int, moved: _Moved) -> list[tuple[SSAValue, Stride]]:
    """How far an operand moves with an index along a loop."""
    return [(index, code.step(operand, loop)) for loop, index in moved]


def indices_in(region: Region) -> frozenset[int]:
    """The iteration dimensions whose index a scalar region asks for."""
    return frozenset(inner.dim.value.data for inner in region.block.ops if isinstance(inner, IndexOp))


def accumulator_of(region: Region) -> Attribute:
    """The type in which an op with this epilogue accumulates."""
    return region.block.args[0].type


def _stretched(one: Affine, count: int) -> Affine:
    """An access over the kept dimensions as one over the whole space."""
    return Affine(one.value, (*one.steps, *(0,) * count), one.offset)
