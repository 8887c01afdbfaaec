"""Names of lengths are carried through a block, before regions fix the types of what crosses their borders."""

from __future__ import annotations

from xdsl.ir import Block
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import compatible, dims, is_unknown
from mlirt.dialects.trt.constant import ConstantOp


def name_lengths(block: Block) -> None:
    """Infer result types with `?` again, in order: an iterator over n x c has slices of c."""
    for op in block.ops:
        if not isinstance(op, TensorOp) or isinstance(op, ConstantOp):
            continue
        if not any(is_unknown(length) for result in op.results for length in dims(result.type)):
            continue
        try:
            inferred = op.infer()
        except VerifyException:  # the verifier says what is wrong with the layer
            continue
        for result, new in zip(list(op.results), inferred, strict=True):
            gained = sum(map(is_unknown, dims(new))) < sum(map(is_unknown, dims(result.type)))
            if gained and compatible(result.type, new):
                Rewriter.replace_value_with_new_type(result, new)
