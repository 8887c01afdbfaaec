"""Einstein sums: as a matrix product where they are one, else as a reduction over products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.einsum_equation import Equation
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.scalar_builder import (
    Scalars,
    accumulator_type,
    arguments_of,
    compute_type,
    conversion_region,
    yield_as,
)
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.einsum import EinsumOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions
from mlirt.passes.fusion.trt_to_fused.products import matmul

Labels = Sequence[str]


def convert_einsum(at: Conversion) -> None:
    """`trt.einsum` becomes a permuted read, a product of elements, a matrix product, or a reduction over products."""
    op = at.op
    assert isinstance(op, EinsumOp)
    equation, values = op.parsed(), list(op.inputs)
    lengths = label_lengths(equation, values)
    space = [*equation.output, *equation.summed]
    access = [
        _access(labels, dims(value.type), space, lengths) for labels, value in zip(equation.inputs, values, strict=True)
    ]
    if not equation.summed:
        compute = compute_type(element_of(op.output.type))
        at.replace(at.pointwise(values, op.output.type, compute, _product, access=access))
    elif is_matrix_product(equation, values, lengths):
        at.replace(_as_matmul(at, equation, values, lengths))
    else:
        at.replace(_as_reduction(at, op, access, [lengths[label] for label in equation.summed]))


def label_lengths(equation: Equation, values: Sequence[SSAValue]) -> dict[str, Dim]:
    """The length behind each label; under an ellipsis a length of 1 gives way to a longer one."""
    found: dict[str, Dim] = {}
    for labels, value in zip(equation.inputs, values, strict=True):
        for label, length in zip(labels, dims(value.type), strict=True):
            if found.get(label, 1) == 1 or (isinstance(length, int) and length != 1):
                found[label] = length
    return found


def _access(labels: Labels, shape: Sequence[Dim], space: Labels, lengths: Mapping[str, Dim]) -> AccessAttr:
    return AccessAttr.of(
        [
            0 if length == 1 and lengths[label] != 1 else iteration(space.index(label))
            for label, length in zip(labels, shape, strict=True)
        ]
    )


def _product(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
    result = x[0]
    for factor in x[1:]:
        result = s.mul(result, factor)
    return result


def _as_reduction(at: Conversion, op: EinsumOp, access: Sequence[AccessAttr], reduced: Sequence[Dim]) -> SSAValue:
    element = element_of(op.output.type)
    accumulator = accumulator_type(element)
    block = Block()
    scalars = Scalars(block, accumulator)
    factors = [scalars.cast(value, element) for value in arguments_of(block, [element] * len(op.inputs))]
    yield_as(scalars, _product(scalars, factors), accumulator)
    epilogue = conversion_region(accumulator, element)
    return at.emit(
        ReductionOp(ReduceKind.ADD, list(op.inputs), access, reduced, op.output.type, Region(block), epilogue)
    )


def is_matrix_product(equation: Equation, values: Sequence[SSAValue], lengths: Mapping[str, Dim]) -> bool:
    """Two inputs without diagonals, every summed label in both of them and of one length."""
    if len(values) != 2 or any(len(set(labels)) != len(labels) for labels in equation.inputs):
        return False
    for labels, value in zip(equation.inputs, values, strict=True):
        own = dict(zip(labels, dims(value.type), strict=True))
        if any(own.get(label) != lengths[label] for label in equation.summed):
            return False
    return True


def _as_matmul(at: Conversion, equation: Equation, values: Sequence[SSAValue], lengths: Mapping[str, Dim]) -> SSAValue:
    left, right = equation.inputs
    batch = [label for label in equation.output if label in left and label in right]
    rows = [label for label in equation.output if label not in right]
    columns = [label for label in equation.output if label not in left]
    depth = list(equation.summed)
    lhs, lhs_flipped = _matrix(at, values[0], left, batch, rows, depth)
    rhs, rhs_flipped = _matrix(at, values[1], right, batch, depth, columns)
    result = matmul(at, lhs, rhs, lhs_flipped, rhs_flipped)
    natural = [*batch, *rows, *columns]
    result = at.viewed(result, [lengths[label] for label in natural])
    return at.transposed(result, [natural.index(label) for label in equation.output])


def _matrix(
    at: Conversion, value: SSAValue, labels: Labels, batch: Labels, first: Labels, second: Labels
) -> tuple[SSAValue, bool]:
    """The value as a batch of matrices first x second, or stored the other way round where that saves a copy."""
    flipped = list(labels) == [*batch, *second, *first] and bool(first) and bool(second)
    order = [*batch, *(second if flipped else first), *(first if flipped else second)]
    moved = at.transposed(value, [labels.index(label) for label in order])
    shape = dims(moved.type)
    count = len(batch) + len(second if flipped else first)
    return at.viewed(moved, [*shape[: len(batch)], product(shape[len(batch) : count]), product(shape[count:])]), flipped


CONVERSIONS: Conversions = {EinsumOp: convert_einsum}
