"""Turns softmax of long rows into a normalisation, whose kernels keep rows that no block can hold."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.softmax_rows import normalization_of
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class ConvertSoftmaxToNormalizationPass(RulePass):
    """Write a `fused.softmax` of rows of more than `longer_than` elements as a `fused.normalization`.

    The largest element and the sum of exponentials are reductions of the row, the share and the epilogue its body.
    Rows of unknown length stay.

    Before:

        %y = fused.softmax %x {axis = 1 : i64} : (tensor<4x100000xf32>) -> tensor<4x100000xf32>

    After:

        %y = fused.normalization %x {axes = [1], kinds = [max, add]} {exp(x - m) / t} {x} {m} {exp(x - m)} {t}
    """

    name = "convert-softmax-to-normalization"

    longer_than: int = option(65536, at_least=1)

    @rule(op(SoftmaxOp).named("softmax"))
    def convert(self, m: Match, softmax: SoftmaxOp) -> Outcome:
        length = dims(softmax.input.type)[softmax.axis.value.data]
        if not isinstance(length, int) or length <= self.longer_than:
            return f"rows of {length} elements are not known to be longer than {self.longer_than} (longer-than)"
        return m.insert(normalization_of(softmax))
