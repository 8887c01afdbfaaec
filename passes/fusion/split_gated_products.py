"""Products of which one elementwise op combines ranges of columns become a product for each of these ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, rank, with_dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.fusion.pointwise_absorption import set_inputs
from mlirt.passes.fusion.product_columns import column_axes, has_one_matrix
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some

PRODUCT = op(MatmulOp).named("whole")


@dataclass(frozen=True)
class SplitGatedProductsPass(RulePass):
    """Split a product by a constant matrix whose only reader combines ranges of its columns, as gated units do.

    Each range becomes a product of its own, with its part of the matrix and of what the epilogue has for each column.
    Then the reader is the epilogue of the last of them, with the others as extra operands: no launch reads all columns
    again. A product of at most `few-rows` rows stays: it takes as long as its matrix.

    Before:

        %p = fused.matmul %x, %w : tensor<64x256xf16>
        %y = fused.pointwise %p, %p [d0, d1] [d0, d1 + 128] { a * gelu(b) } : tensor<64x128xf16>

    After:

        %a = fused.matmul %x, %w0 : tensor<64x128xf16>
        %b = fused.matmul %x, %w1 : tensor<64x128xf16>
        %y = fused.pointwise %a, %b [d0, d1] [d0, d1] { a * gelu(b) } : tensor<64x128xf16>
    """

    name = "split-gated-products"

    few_rows: int = option(64, at_least=0)

    @rule(op(PointwiseOp, inputs=some(PRODUCT)).named("reader"))
    def split(self, m: Match, reader: PointwiseOp, whole: MatmulOp) -> Outcome:
        rows = product(dims(whole.output.type)[:-1])
        if isinstance(rows, int) and rows <= self.few_rows:
            return "{whole} has few rows"
        if {use.operation for use in whole.output.uses} != {reader} or len(reader.outputs) != 1:
            return "others read {whole}"
        starts = _starts(reader, whole)
        if starts is None:
            return "it does not read ranges of the columns of {whole}, each as it is"
        if (reason := _obstacle(whole)) is not None:
            return reason
        parts = {start: _part(m, whole, start, _width(reader)).output for start in starts}
        _read_parts(m, reader, whole.output, parts)
        m.drop(whole)
        return reader


def _width(reader: PointwiseOp) -> int:
    width = dims(reader.outputs[0].type)[-1]
    assert isinstance(width, int)
    return width


def _starts(reader: PointwiseOp, whole: MatmulOp) -> Sequence[int] | None:
    """The first columns of the ranges that are read; None where other elements are, where ranges overlap, or there is
    one.
    """
    shape, columns = dims(reader.outputs[0].type), dims(whole.output.type)[-1]
    width = shape[-1]
    if shape[:-1] != dims(whole.output.type)[:-1] or not isinstance(width, int) or not isinstance(columns, int):
        return None
    found: set[int] = set()
    for value, access in zip(reader.inputs, reader.access, strict=True):
        if value is whole.output:
            start = _offset(access, len(shape))
            if start is None:
                return None
            found.add(start)
    starts = sorted(found)
    apart = all(following - start >= width for start, following in pairwise(starts))
    return starts if len(starts) > 1 and apart and starts[-1] + width <= columns else None


def _offset(access: AccessAttr, axes: int) -> int | None:
    """How far the last index is from the last iteration dimension, where the others are their dimensions."""
    if len(access.indices()) != axes:
        return None
    *outer, last = access.indices()
    if outer != [iteration(axis) for axis in range(axes - 1)]:
        return None
    offset = last - iteration(axes - 1)
    return offset if isinstance(offset, int) and offset >= 0 else None


def _obstacle(whole: MatmulOp) -> str | None:
    """Why the columns of a product cannot be computed apart."""
    if not has_one_matrix(whole):
        return "the matrix of {whole} is not one constant, or its epilogue asks for the place"
    for value, axis in zip(whole.extras, column_axes(whole.access, rank(whole.output.type)), strict=True):
        if axis is not None and not isinstance(value.owner, ConstantOp):
            return "the epilogue of {whole} reads a tensor that is not known"
    return None


def _part(m: Match, whole: MatmulOp, start: int, width: int) -> MatmulOp:
    """The product of some columns alone."""
    transposed = bool(whole.transpose_rhs.value.data)
    weights = _sliced(m, whole.rhs, rank(whole.rhs.type) - (2 if transposed else 1), start, width)
    extras = [
        value if axis is None else _sliced(m, value, axis, start, width)
        for value, axis in zip(whole.extras, column_axes(whole.access, rank(whole.output.type)), strict=True)
    ]
    type_ = with_dims(whole.output.type, [*dims(whole.output.type)[:-1], width])
    flags = bool(whole.transpose_lhs.value.data), transposed
    made = MatmulOp(whole.lhs, weights, type_, whole.epilogue.clone(), extras, list(whole.access), *flags)
    made.properties["may_round"] = whole.may_round
    return m.insert(made, whole)


def _sliced(m: Match, value: SSAValue, axis: int, start: int, width: int) -> SSAValue:
    import numpy as np

    constant = value.owner
    assert isinstance(constant, ConstantOp)
    part = m.array(value).take(range(start, start + width), axis)
    return m.constant(np.ascontiguousarray(part), f"columns {start}", constant)


def _read_parts(m: Match, reader: PointwiseOp, whole: SSAValue, parts: Mapping[int, SSAValue]) -> None:
    """Let the reader read parts where it read ranges, and its constants for each column from their own beginning."""
    axes = len(dims(reader.outputs[0].type))
    plain = [iteration(axis) for axis in range(axes)]
    inputs, accesses = list[SSAValue](), list[AccessAttr]()
    for value, access, along in zip(reader.inputs, reader.access, column_axes(reader.access, axes), strict=True):
        indices: Sequence[Dim] = access.indices()
        start = None if along is None else indices[along] - plain[-1]
        if value is whole:
            offset = _offset(access, axes)
            assert offset is not None
            value, indices = parts[offset], plain
        elif along is not None and isinstance(start, int) and isinstance(value.owner, ConstantOp):
            value = _sliced(m, value, along, start, _width(reader))
            indices = [*indices[:along], plain[-1], *indices[along + 1 :]]
        inputs.append(value)
        accesses.append(AccessAttr.of(indices))
    set_inputs(reader, inputs, accesses)
