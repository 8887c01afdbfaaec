"""A reduction as a parallel nest over the results around a reduction over the rest."""

from __future__ import annotations

from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.tensor_types import rank
from mlirt.kernels.lib.language.words import inline
from mlirt.kernels.lib.loops.loop_nest import affine, direct
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.nests.reduction_nest import Accumulation, lower_accumulation
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: ReductionOp, lowering: Lowering) -> bool:
    places, border = lowering.placements, rank(op.output.type)
    reduced = op.reduced.dims()
    width = border + len(reduced)
    extras = zip(op.extras, op.extra_access, strict=True)
    job = Accumulation(
        kind=op.kind.data,
        reduced=reduced,
        inputs=[affine(value, places[value], one, width) for value, one in zip(op.inputs, op.access, strict=True)],
        extras=[affine(value, places[value], one, border) for value, one in extras],
        result=direct(op.output, places[op.output]),
        body=lambda scalars, indices: inline(op.body, scalars, indices)[0],
        epilogue=op.epilogue,
        indices_in_body=indices_in(op.body),
    )
    lower_accumulation(op, job, "reduction", lowering)
    return True
