"""Fuses an elementwise op into the attention before it."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scalar_builder import conversion_region
from mlirt.dialects.tensor_types import element_of
from mlirt.passes.fusion.epilogues import reads_elements
from mlirt.passes.fusion.scalar_bodies import append, tidy
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some


@dataclass(frozen=True)
class FuseAttentionElementwisePass(RulePass):
    """Compute what follows attention element by element, and of its result alone, in its launch.

    That is most often the rounding to int8 for a quantised product. Nobody else may read the result.

    Before:

        %y = fused.attention %q, %k, %v .. : tensor<2x5x16xf16> { score }
        %z = fused.pointwise %y [d0, d1, d2] { quantise } : tensor<2x5x16xi8>

    After:

        %z = fused.attention %q, %k, %v .. : tensor<2x5x16xi8> { score } { quantise }
    """

    name = "fuse-attention-elementwise"

    @rule(op(PointwiseOp, inputs=some(op(AttentionOp).named("attention"))).named("consumer"))
    def fuse(self, m: Match, consumer: PointwiseOp, attention: AttentionOp) -> Outcome:
        if not reads_elements(consumer, attention.output):
            return "it reads more than the elements of {attention}"
        epilogue, wide = attention.epilogue, attention.score.block.args[0].type
        if epilogue is None:
            epilogue = conversion_region(wide, element_of(attention.output.type))
        else:
            attention.detach_region(epilogue)
        last = epilogue.block.last_op
        assert last is not None
        append(epilogue.block, consumer.body, [last.operands[0]] * len(consumer.inputs))
        tidy(epilogue.block)
        properties = dict(attention.properties)
        properties.pop("operandSegmentSizes", None)
        made = AttentionOp.build(
            operands=[*attention.operands[:3], list(attention.extras)],
            properties=properties,
            attributes=dict(attention.attributes),
            result_types=[consumer.outputs[0].type],
            regions=[attention.detach_region(attention.score), [epilogue]],
        )
        return m.insert(made, attention, consumer)


__all__ = ["FuseAttentionElementwisePass"]
