"""Which layers of a half-precision network stay in float32: the range or the precision of 16 bits is not enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.cumulative import CumulativeOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.einsum import EinsumOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.multiply_add import MultiplyAddOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.rnn import RnnOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp
from mlirt.passes.precision.half_constants import is_tiny, loses_weight

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

    WeightOf = Callable[[ConstantOp], Array]

# Sums of products; of all layers they gain most from half precision.
CONTRACTIONS = (ConvolutionOp, DeconvolutionOp, FullyConnectedOp, MatrixMultiplyOp, EinsumOp)
# One formula per element.
POINTWISE = (ActivationOp, ElementwiseOp, UnaryOp, ScaleOp, SelectOp, ParametricReluOp)
_MOVES = (ShuffleOp, SliceOp, ConcatenationOp, PaddingOp, ReduceOp)
# Moves that compute nothing, and layers that round all numbers that they read to the format.
_EXACT_MOVES = (ShuffleOp, SliceOp, ConcatenationOp)
_ROUNDING_READERS = (*CONTRACTIONS, *_EXACT_MOVES, PoolingOp, SoftmaxOp)

# Their results span many more powers of two than their operands, or become divisors.
_WIDE_UNARY = (UnaryKind.EXP, UnaryKind.LOG, UnaryKind.RECIP)
_WIDE_REDUCE = (ReduceKind.SUM, ReduceKind.AVG, ReduceKind.PROD)
_GUARDS = (ElementwiseKind.SUM, ElementwiseKind.MAX)
_RATIOS = (ElementwiseKind.PROD, ElementwiseKind.DIV)


def float32_layers(block: Block, weight_of: WeightOf, element: Attribute) -> set[Operation]:
    """The layers of a block that must keep their float32 results where the others store numbers as `element`.

    These are the signal under a logarithm, weights that the format does not hold, powers, exponentials, reciprocals,
    sums over an axis and of int8 products, what keeps a divisor from zero, and what is computed from their results
    alone; but not moves that only layers read which round them anyway.
    """
    kept = _signals_under_logarithms(block)

    @cache
    def is_coarse(constant: ConstantOp) -> bool:
        return _is_coarse(constant, weight_of, element)

    for op in block.ops:
        if isinstance(op, TensorOp) and not isinstance(op, ConstantOp) and op not in kept and _is_float32(op):
            coarse = isinstance(op, CONTRACTIONS) and _has_coarse_weights(op, is_coarse)
            wide = _is_wide_integer(op) or _widens_the_range(op) or _keeps_from_zero(op, weight_of, element)
            if coarse or wide or _reads_only(op, kept):
                kept.add(op)
    for op in reversed(list(block.ops)):
        if op in kept and isinstance(op, _EXACT_MOVES) and _readers_round(op, kept):
            kept.remove(op)
    return kept


def _readers_round(op: Operation, kept: set[Operation]) -> bool:
    """Whether all that reads a move stores numbers in the format: rounding before the move gives the same numbers."""
    uses = [use for result in op.results for use in result.uses]
    return bool(uses) and all(
        isinstance(use.operation, _ROUNDING_READERS)
        and use.operation not in kept
        and use.operation.operands[use.index] is not getattr(use.operation, "bias", None)
        for use in uses
    )


def _is_float32(op: Operation) -> bool:
    return any(element_of(result.type) == f32 for result in op.results)


def _widens_the_range(op: Operation) -> bool:
    """Powers, squares, exponentials, logarithms, reciprocals, sums along an axis, integers in steps."""
    if isinstance(op, UnaryOp):
        return op.kind.data in _WIDE_UNARY
    if isinstance(op, ElementwiseOp):
        square = op.kind.data is ElementwiseKind.PROD and op.lhs is op.rhs
        return square or op.kind.data is ElementwiseKind.POW
    if isinstance(op, RnnOp):
        return op.scale is not None
    return isinstance(op, CumulativeOp | MultiplyAddOp) or (isinstance(op, ReduceOp) and op.kind.data in _WIDE_REDUCE)


def _keeps_from_zero(op: Operation, weight_of: WeightOf, element: Attribute) -> bool:
    """Whether a sum, a maximum or a lower bound has a constant below the normal numbers of the format: the epsilon of
    a divisor, which must not become zero where the rest of it is zero.
    """
    if isinstance(op, ActivationOp):
        return op.kind.data is ActivationKind.CLIP and is_tiny(op.alpha.value.data, element)
    if not isinstance(op, ElementwiseOp) or op.kind.data not in _GUARDS:
        return False
    owners = [value.owner for value in op.operands]
    return any(isinstance(owner, ConstantOp) and is_tiny(weight_of(owner), element) for owner in owners)


def _is_wide_integer(op: Operation) -> bool:
    """Whether a layer makes numbers of 32-bit integers, such as the sums of quantised products."""
    return isinstance(op, IdentityOp) and element_of(op.input.type) in (i32, i64)


def _has_coarse_weights(op: Operation, is_coarse: Callable[[ConstantOp], bool]) -> bool:
    bias = getattr(op, "bias", None)
    owners = [operand.owner for operand in op.operands if operand is not bias]
    return any(isinstance(owner, ConstantOp) and is_coarse(owner) for owner in owners)


def _is_coarse(constant: ConstantOp, weight_of: WeightOf, element: Attribute) -> bool:
    return element_of(constant.output.type) == f32 and loses_weight(weight_of(constant), element)


def _reads_only(op: Operation, kept: set[Operation]) -> bool:
    """Whether a pointwise layer or a move computes with results of kept layers alone, constants aside."""
    owners = [value.owner for value in _computed(op)]
    return isinstance(op, POINTWISE + _MOVES) and bool(owners) and all(owner in kept for owner in owners)


def _computed(op: Operation) -> Iterator[SSAValue]:
    """The float32 operands that are no constants."""
    for value in op.operands:
        if element_of(value.type) == f32 and not isinstance(value.owner, ConstantOp):
            yield value


def _signals_under_logarithms(block: Block) -> set[Operation]:
    """Logarithms and what leads to their operands: a logarithm asks for the same precision of every magnitude.

    The way back goes through sums, products with constants, powers and moves, as in a spectrogram; it ends with the
    first layer that has a curve of its own, such as an activation, or that weighs one result by another.
    """
    found: set[Operation] = set()
    for op in reversed(list(block.ops)):
        is_logarithm = isinstance(op, UnaryOp) and op.kind.data is UnaryKind.LOG
        if not (is_logarithm or op in found) or not _is_float32(op):
            continue
        found.add(op)
        if is_logarithm or _hands_on(op):
            owners = [value.owner for value in _computed(op)]
            found.update(owner for owner in owners if isinstance(owner, _PARTS_OF_SIGNALS))
    return found


_PARTS_OF_SIGNALS = (*CONTRACTIONS, *POINTWISE, *_MOVES, PoolingOp, SoftmaxOp, IdentityOp)


def _hands_on(op: Operation) -> bool:
    """Whether a layer's result is as precise as its operands are, and no more."""
    if isinstance(op, ActivationOp):
        return op.kind.data is ActivationKind.CLIP
    if isinstance(op, UnaryOp):
        return op.kind.data in (UnaryKind.SQRT, UnaryKind.ABS, UnaryKind.NEG)
    if isinstance(op, ElementwiseOp) and op.kind.data in _RATIOS:
        return len(set(_computed(op))) == 1
    return isinstance(op, (*CONTRACTIONS, *_MOVES, ElementwiseOp, ScaleOp, SelectOp, PoolingOp))
