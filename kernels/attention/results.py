"""From a result of attention in the type of the computation to the element that is stored."""

from __future__ import annotations

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.lib.epilogue import finished_fragment
from mlirt.kernels.lib.language import Value
from mlirt.kernels.lib.language.simt_words import elementwise
from mlirt.kernels.lib.language.words import cast, inline


def finished_result(op: AttentionOp, number: Value) -> Value:
    """What is stored of a result: what the epilogue makes of it, or the number itself, rounded."""
    wide = op.score.block.args[0].type
    if op.epilogue is None:
        return cast(number, wide, element_of(op.output.type))
    (found,) = inline(op.epilogue, [number], [])
    return found


def finished_results(op: AttentionOp, numbers: Value) -> Value:
    """The same of the neighbouring results that a thread has."""
    element = element_of(op.output.type)

    def rounded(number: Value) -> Value:
        return finished_result(op, number)

    if op.epilogue is None:
        return elementwise(rounded, element, numbers)
    return finished_fragment(op.epilogue, [numbers], element)
