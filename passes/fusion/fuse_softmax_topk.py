"""Fuses softmax and TopK: the largest elements are found first, and only they are divided."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.topk import ExtremeKind, Normalization, TopkOp
from mlirt.dialects.tensor_types import dims
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

# More are searched for by halving the range of the numbers, which is narrower for shares than for scores.
_MAX_K = 15
# A row has to be so many times as long as what is wanted of it, else dividing all is as good.
_MIN_RATIO = 64


@dataclass(frozen=True)
class FuseSoftmaxTopkPass(RulePass):
    """Find the largest of the scores, and normalise these alone: the others count in the sum of exponentials only.

    Softmax keeps the order. Scores that differ may have shares that are rounded to the same number; the larger score
    comes first then, not the lower position. That is why the smallest shares, often zeros, are left alone, and so is
    where more than 15 elements or a 64th of a row are wanted, which gains nothing. Nobody else may read the shares.
    Where only places are wanted there is nothing to normalise.

    Before:

        %p = fused.softmax %x {axis = 1 : i64} : tensor<4x1000xf32>
        %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x1000xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>)

    After:

        %v, %i = fused.topk max %x {axis = 1 : i64, normalization = #fused<topk_normalization softmax>} : ...
    """

    name = "fuse-softmax-topk"

    @rule(op(TopkOp, op(SoftmaxOp).named("softmax"), ...).named("topk"))
    def fuse(self, m: Match, topk: TopkOp, softmax: SoftmaxOp) -> Outcome:
        if (reason := _obstacle(topk, softmax)) is not None:
            return reason
        kind = Normalization.LOG_SOFTMAX if softmax.log.value.data else Normalization.SOFTMAX
        types = topk.values.type, topk.indices.type
        axis, is_sorted = topk.axis.value.data, bool(topk.sorted.value.data)
        normalization = None if topk.values.first_use is None else kind
        return m.insert(TopkOp(ExtremeKind.MAX, softmax.input, axis, *types, is_sorted, normalization))


def _obstacle(topk: TopkOp, softmax: SoftmaxOp) -> str | None:
    """Why the elements must be normalised before; None where they need not."""
    if topk.axis.value.data != softmax.axis.value.data:
        return "they run along different axes"
    if topk.kind.data is not ExtremeKind.MAX or topk.normalization is not None:
        return "the smallest shares may be equal where scores are not"
    count, length = topk.count(), dims(topk.input.type)[topk.axis.value.data]
    if not isinstance(count, int) or not isinstance(length, int):
        return "it is not known how much of a row is wanted"
    return None if count <= _MAX_K and length >= _MIN_RATIO * count else "too much of a row is wanted"
