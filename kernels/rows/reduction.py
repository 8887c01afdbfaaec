"""A reduction as a parallel nest over the results around a reduction over the rest."""

from __future__ import annotations

from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.tensor_types import rank
from mlirt.kernels.lib.language.words import inline
from mlirt.kernels.lib.loops.loop_nest import affine
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.nests.reduction_nest import Accumulation, lower_accumulation
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: ReductionOp, lowering: Lowering) -> bool:
    places, reduced = lowering.placements, op.reduced.dims()
    width = rank(op.output.type) + len(reduced)
    job = Accumulation(
        op,
        kind=op.kind.data,
        reduced=reduced,
        inputs=[affine(value, places[value], one, width) for value, one in zip(op.inputs, op.access, strict=True)],
        body=lambda scalars, indices: inline(op.body, scalars, indices)[0],
        indices_in_body=indices_in(op.body),
    )
    lower_accumulation(job, "reduction", lowering)
    return True
