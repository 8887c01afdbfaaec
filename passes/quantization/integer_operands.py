"""Which layers have integer kernels, which of their operands these read, and along which axis their weights lie."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.passes.quantization.gates import computes_a_gate

SMOOTHING = (ConvolutionOp, DeconvolutionOp, FullyConnectedOp, MatrixMultiplyOp)
"""What sums many products up, so that the rounding of its operands cancels out."""


def weight_axis(op: Operation) -> int | None:
    """The axis of output channels of a layer's constant float32 weights, its second operand; None for other layers.

    Deconvolutions have no integer kernels: with 8-bit operands they would only be less exact. Depthwise convolutions
    have nothing to gain, as machines multiply bytes of several channels at a time; and their sums are too short for the
    errors of rounding to cancel out, in channels whose ranges differ most. Neither have convolutions of a single pixel
    that become factors of images: they read each weight once, and what they round goes into all pixels.
    """
    if not isinstance(op, ConvolutionOp | FullyConnectedOp | MatrixMultiplyOp):
        return None
    weights = op.operands[1]
    if not isinstance(weights.owner, ConstantOp) or element_of(weights.type) != f32:
        return None
    if isinstance(op, ConvolutionOp):
        is_depthwise = op.groups > 1 and dims(weights.type)[1] == 1
        return None if is_depthwise or computes_a_gate(op) else 0
    if isinstance(op, FullyConnectedOp):
        return 0
    if MatrixOperation.VECTOR in (op.lhs_op.data, op.rhs_op.data) or any(dim != 1 for dim in dims(weights.type)[:-2]):
        return None
    return rank(weights.type) - (2 if op.rhs_op.data is MatrixOperation.TRANSPOSE else 1)


def is_residual(op: Operation) -> bool:
    """Whether an op adds two tensors of one shape, neither of which is a constant."""
    if not isinstance(op, ElementwiseOp) or op.kind.data is not ElementwiseKind.SUM:
        return False
    left, right = op.operands
    computed = not any(isinstance(value.owner, ConstantOp) for value in (left, right))
    return computed and element_of(left.type) == f32 and dims(left.type) == dims(right.type)


def is_average(op: Operation) -> bool:
    """Whether an op averages windows, which integers do as well if the result is one too."""
    return isinstance(op, PoolingOp) and op.kind.data is PoolingKind.AVERAGE and element_of(op.input.type) == f32


def only_reader(value: SSAValue) -> Operation | None:
    """The one op that reads a value; None where there are several, or none."""
    readers = {use.operation for use in value.uses}
    return readers.pop() if len(readers) == 1 else None
