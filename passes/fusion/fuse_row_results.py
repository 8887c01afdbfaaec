"""Fuses an elementwise op into the normalisation before it, as one more result, where others read that too."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.integer_list import integers
from mlirt.passes.fusion.epilogues import reads_elements
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
        consumer = next((one for one in readers if reads_elements(one, rows.output)), None)
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


__all__ = ["FuseRowResultsPass"]
