"""What the rewritings of convolutions have in common: which ones they take, and how others stand in their place."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.tensor_types import element_of, rank
from mlirt.dialects.trt.constant import ConstantOp


def is_direct(op: Operation, dimensions: int) -> bool:
    """Whether an op is a convolution, neither transposed nor pooled, of so many dimensions in float32 with a constant
    kernel.
    """
    if not isinstance(op, ConvolutionOp) or rank(op.output.type) != dimensions or op.transposed.value.data:
        return False
    if op.pooling is not None:
        return False
    return isinstance(element_of(op.input.type), Float32Type) and isinstance(op.kernel.owner, ConstantOp)


def in_front_of(op: Operation) -> Callable[[Operation], SSAValue]:
    """A function that puts ops with the location of `op` in front of it and gives their result."""
    block = op.parent
    assert block is not None

    def insert(new: Operation) -> SSAValue:
        new.location = op.location
        block.insert_op_before(new, op)
        return new.results[0]

    return insert


def replace(op: ConvolutionOp, result: SSAValue) -> None:
    """Let all read `result` in place of the result of a convolution, which is erased."""
    result.name_hint = op.output.name_hint
    op.output.replace_all_uses_with(result)
    op.detach()
    op.erase()
