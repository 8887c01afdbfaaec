"""Which dimensions of a layer's operands have to be repeated for one of its result to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.multiply_add import MultiplyAddOp
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryOp

Place = tuple[int, int]


def repeated_axes(op: Operation, axis: int) -> list[Place] | None:
    """The pairs of an operand's position and an axis of it that are repeated in the place of an axis of the result.

    None where the layer computes something else from operands that are repeated. An axis whose length is the number 1
    stays as it is.
    """
    places = _places(op, axis)
    if places is None:
        return None
    length = dims(op.results[0].type)[axis]
    lengths = [dims(op.operands[position].type)[own] for position, own in places]
    if any(own not in (1, length) for own in lengths):
        return None
    return [place for place, own in zip(places, lengths, strict=True) if own != 1]


def set_length(op: Operation, size: Sequence[Dim]) -> None:
    """Change what the properties of a layer say about the dimensions of its result, for operands that are repeated."""
    if isinstance(op, ShuffleOp) and op.reshape_dims is not None:
        second = range(len(size)) if op.second_transpose is None else integers(op.second_transpose)
        before = list(size)
        for axis, source in enumerate(second):
            before[source] = size[axis]
        op.properties["reshape_dims"] = DimsAttr.of(before)


def _places(op: Operation, axis: int) -> list[Place] | None:
    if isinstance(op, ElementwiseOp | SelectOp | ParametricReluOp | MultiplyAddOp):
        return [(position, axis) for position in range(len(op.operands))]
    if isinstance(op, ActivationOp | UnaryOp | IdentityOp):
        return [(0, axis)]
    if isinstance(op, SoftmaxOp):
        return None if op.axis.value.data == axis else [(0, axis)]
    if isinstance(op, ConvolutionOp | PoolingOp):
        return [(0, 0)] if axis == 0 else None
    if isinstance(op, ConcatenationOp):
        joined = op.axis.value.data == axis
        return None if joined else [(position, axis) for position in range(len(op.operands))]
    if isinstance(op, ReduceOp):
        return _reduced(op, axis)
    if isinstance(op, GatherOp):
        return _gathered(op, axis)
    if isinstance(op, MatrixMultiplyOp):
        return list(_multiplied(op, axis))
    return _reshaped(op, axis) if isinstance(op, ShuffleOp) else None


def _reduced(op: ReduceOp, axis: int) -> list[Place] | None:
    reduced = integers(op.axes)
    kept = [own for own in range(rank(op.input.type)) if own not in reduced]
    if not op.keep_dims.value.data:
        return [(0, kept[axis])]
    return [(0, axis)] if axis in kept else None


def _gathered(op: GatherOp, axis: int) -> list[Place] | None:
    if op.mode.data is not GatherMode.DEFAULT or op.elementwise_dims:
        return None
    first, count = op.axis.value.data, rank(op.indices.type)
    if first <= axis < first + count:
        return [(1, axis - first)]
    return [(0, axis if axis < first else axis - count + 1)]


def _multiplied(op: MatrixMultiplyOp, axis: int) -> Iterator[Place]:
    left, right = op.lhs_op.data, op.rhs_op.data
    batch = rank(op.lhs.type) - (1 if left is MatrixOperation.VECTOR else 2)
    if axis < batch:
        yield from ((0, axis), (1, axis))
    elif axis == batch and left is not MatrixOperation.VECTOR:
        yield 0, batch + (1 if left is MatrixOperation.TRANSPOSE else 0)
    else:
        yield 1, batch + (0 if right is MatrixOperation.TRANSPOSE else 1)


def _reshaped(op: ShuffleOp, axis: int) -> list[Place] | None:
    """The axis of the input that has the same length behind equally many elements."""
    if op.shape is not None:
        return None
    before, after = op.transposed_dims(), op.reshaped_dims()
    place = axis if op.second_transpose is None else integers(op.second_transpose)[axis]
    outer = product(after[:place])
    found = [k for k, own in enumerate(before) if own == after[place] and product(before[:k]) == outer]
    if not found:
        return None
    return [(0, found[0] if op.first_transpose is None else integers(op.first_transpose)[found[0]])]
