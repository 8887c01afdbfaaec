"""Equations between matrix products: their transposes, and the order of several."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import element_of, is_float, rank
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.rules import Outcome, op, value
from mlirt.passes.rules.equality.equation import EqualMatch, equation

x, a, b = value("x"), value("a"), value("b")
_NONE, _TRANSPOSE = MatrixOperation.NONE, MatrixOperation.TRANSPOSE


@equation(op(ShuffleOp, op(MatrixMultiplyOp, a, b).named("product"), reshape_dims=None).named("transpose"))
def transpose_product(
    m: EqualMatch, transpose: ShuffleOp, product: MatrixMultiplyOp, a: SSAValue, b: SSAValue
) -> Outcome:
    """(A B)^T = B^T A^T: the same sums."""
    operations = (product.lhs_op.data, product.rhs_op.data)
    if not _swaps_last(transpose, rank(product.output.type)) or MatrixOperation.VECTOR in operations:
        return None
    lhs, rhs = (_NONE if one is _TRANSPOSE else _TRANSPOSE for one in reversed(operations))
    if not is_float(element_of(a.type)):
        return None  # bytes have their signs by the side on which they stand
    return m.make(MatrixMultiplyOp, b, a, lhs_op=lhs.value, rhs_op=rhs.value)


def _swaps_last(transpose: ShuffleOp, axes: int) -> bool:
    if transpose.first_transpose is not None and transpose.second_transpose is not None:
        return False
    given = transpose.first_transpose if transpose.first_transpose is not None else transpose.second_transpose
    order: Sequence[int] = () if given is None else integers(given)
    return list(order) == [*range(axes - 2), axes - 1, axes - 2]


@equation(op(MatrixMultiplyOp, op(MatrixMultiplyOp, x, a).named("inner"), b).named("outer"), "reassociate")
def multiply_right_first(
    m: EqualMatch, outer: MatrixMultiplyOp, inner: MatrixMultiplyOp, x: SSAValue, a: SSAValue, b: SSAValue
) -> Outcome:
    """(X A) B = X (A B)."""
    if not _are_plain(outer, inner) or not is_float(element_of(outer.output.type)):
        return None
    second = m.make_after(
        [outer], MatrixMultiplyOp, a, b, lhs_op=inner.rhs_op.data.value, rhs_op=outer.rhs_op.data.value
    )
    return m.make(MatrixMultiplyOp, x, second.output, lhs_op=inner.lhs_op.data.value)


@equation(op(MatrixMultiplyOp, x, op(MatrixMultiplyOp, a, b).named("inner")).named("outer"), "reassociate")
def multiply_left_first(
    m: EqualMatch, outer: MatrixMultiplyOp, inner: MatrixMultiplyOp, x: SSAValue, a: SSAValue, b: SSAValue
) -> Outcome:
    """X (A B) = (X A) B."""
    if not _are_plain(outer, inner) or not is_float(element_of(outer.output.type)):
        return None
    first = m.make_after(
        [outer], MatrixMultiplyOp, x, a, lhs_op=outer.lhs_op.data.value, rhs_op=inner.lhs_op.data.value
    )
    return m.make(MatrixMultiplyOp, first.output, b, rhs_op=inner.rhs_op.data.value)


def _are_plain(outer: MatrixMultiplyOp, inner: MatrixMultiplyOp) -> bool:
    """Whether what lies between is not transposed, and nothing is a vector."""
    kinds = (outer.lhs_op.data, outer.rhs_op.data, inner.lhs_op.data, inner.rhs_op.data)
    between = outer.lhs_op.data if outer.lhs.owner is inner else outer.rhs_op.data
    return MatrixOperation.VECTOR not in kinds and between is _NONE


EQUATIONS = (transpose_product, multiply_right_first, multiply_left_first)
