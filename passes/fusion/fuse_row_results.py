"""Fuses an elementwise op into the normalisation before it, as one more result, where others read that too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from xdsl.ir import Operation

from mlirt.dialects.fused.access import is_elementwise
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.scalar_bodies import append, tidy
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FuseRowResultsPass(RulePass):
    """Let a normalisation give what an op computes of its result element by element, besides that result.

    In a transformer that is quantised a layer normalisation is read as it is, by a residual connection, and in int8, by
    the next product: one launch writes both. A normalisation has at most `max-results`.

    Before:

        %n = fused.normalization %x .. : (tensor<4x9xf16>) -> tensor<4x9xf16>
        %q = fused.pointwise %n [d0, d1] { quantise } : tensor<4x9xi8>

    After:

        %n, %q = fused.normalization %x .. : (tensor<4x9xf16>) -> (tensor<4x9xf16>, tensor<4x9xi8>)
    """

    name = "fuse-row-results"

    max_results: int = option(2, at_least=1)

    @rule(op(NormalizationOp).named("rows"))
    def join(self, m: Match, rows: NormalizationOp) -> Outcome:
        readers = dict.fromkeys(use.operation for use in rows.output.uses)
        consumer = next((one for one in readers if _reads_elements(one, rows)), None)
        if consumer is None or len(readers) < 2 or rows.reduced.dims():
            return None
        if len(rows.results) >= self.max_results:
            return f"it has {len(rows.results)} results already (max-results)"
        body, *stages = [rows.detach_region(region) for region in list(rows.regions)]
        last = body.block.last_op
        assert last is not None
        own = list(last.operands)
        append(body.block, consumer.body, [own[0]] * len(consumer.inputs))
        last = body.block.last_op
        assert last is not None
        last.operands = [*own, *last.operands]
        tidy(body.block)
        made = NormalizationOp(
            list(rows.inputs),
            list(rows.access),
            integers(rows.axes),
            [kind.data for kind in rows.kinds],
            rows.output.type,
            body,
            stages,
            further=[*(one.type for one in rows.further), consumer.outputs[0].type],
        )
        made.attributes = dict(rows.attributes)
        m.insert(made, rows, consumer)
        *before, result = made.results
        consumer.outputs[0].replace_all_uses_with(result)
        m.drop(consumer)
        return before


def _reads_elements(reader: Operation, rows: NormalizationOp) -> TypeGuard[PointwiseOp]:
    """Whether an op computes its only result of the normalisation's, element by element, and of nothing else."""
    if not isinstance(reader, PointwiseOp) or reader.parent is not rows.parent or len(reader.outputs) != 1:
        return False
    shape = dims(rows.output.type)
    reads = zip(reader.inputs, reader.access, strict=True)
    same = all(value is rows.output and is_elementwise(access, shape) for value, access in reads)
    placed = any(isinstance(inner, IndexOp) for inner in reader.body.block.ops)
    return same and not placed and dims(reader.outputs[0].type) == shape


__all__ = ["FuseRowResultsPass"]
