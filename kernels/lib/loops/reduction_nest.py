"""The loop nest of everything that accumulates over an affine box: reductions and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.reduction import ReductionKind, neutral
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_name, rank
from mlirt.kernels.lib.loops.block_lanes import LaneMask, lane_axes, number
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

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

        def element(more: Sequence[SSAValue]) -> SSAValue:
            at = [*here, *more]
            scalars = [code.load(position, at) for position in range(len(job.inputs))]
            indices = [code.original(axis, at) if axis in needed else at[0] for axis in range(len(space))] if at else []
            return job.body(k, scalars, indices)

        total = k.reduce(ReduceKind(job.kind.value), inner, init, element) if inner else element([])
        extras = [code.load(len(job.inputs) + position, here) for position in range(len(job.extras))]
        indices = [code.original(axis, here) if axis in needed else loops[0] for axis in range(border)]
        (value,) = k.inline(job.epilogue, [total, *extras], indices)
        mask = LaneMask(k, output.type, lambda axis: code.original(axis, here))
        code.store(mask.apply(value), len(operands) - 1, here)
    k.finish(op)


def indices_in(region: Region) -> frozenset[int]:
    """The iteration dimensions whose index a scalar region asks for."""
    return frozenset(inner.dim.value.data for inner in region.block.ops if isinstance(inner, IndexOp))


def accumulator_of(region: Region) -> Attribute:
    """The type in which an op with this epilogue accumulates."""
    return region.block.args[0].type


def _stretched(one: Affine, count: int) -> Affine:
    """An access over the kept dimensions as one over the whole space."""
    return Affine(one.value, (*one.steps, *(0,) * count), one.offset)
