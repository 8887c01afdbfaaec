"""Equations between sums: reductions of reductions, sums of what linear layers give, and sums that are 0."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from xdsl.ir import SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, numbers_of
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.fusion.affine_chains import AffineChain
from mlirt.passes.fusion.algebra.functions import filled
from mlirt.passes.fusion.linear_sums import LINEAR, moved_sum
from mlirt.passes.rules import Outcome, binary, either, op, value
from mlirt.passes.rules.equality.equation import EqualMatch, equation

x, y = value("x"), value("y")
_KINDS = either("sum", "avg", "max", "min", "prod")


@equation(op(ReduceOp, op(ReduceOp, x, kind=_KINDS).named("inner"), kind=_KINDS).named("outer"))
def reduce_once(m: EqualMatch, outer: ReduceOp, inner: ReduceOp, x: SSAValue) -> Outcome:
    """sum(sum(x)) = sum(x) over the axes of both."""
    kind = outer.kind.data
    if inner.kind.data is not kind or not is_float(element_of(x.type)):
        return None
    if kind not in (ReduceKind.MAX, ReduceKind.MIN):
        m.need("reassociate")
    if kind is ReduceKind.AVG and not all(isinstance(size, int) and size > 0 for size in dims(x.type)):
        return None  # of no elements there is no mean, of which a mean would be taken
    first = set(integers(inner.axes))
    left = [axis for axis in range(rank(x.type)) if inner.keep_dims.value.data or axis not in first]
    axes = sorted(first | {left[axis] for axis in integers(outer.axes)})
    total = m.make(ReduceOp, x, kind=kind.value, axes=axes, keep_dims=True).output
    wanted = dims(outer.output.type)
    if dims(total.type) == wanted:
        return total
    return m.make(ShuffleOp, total, reshape_dims=DimsAttr.of(wanted), zero_is_placeholder=False)


@equation(
    op(ElementwiseOp, op(ReduceOp, x, kind="sum").named("one"), op(ReduceOp, y, kind="sum").named("other"), kind="sum"),
    "reassociate",
)
def sum_once(m: EqualMatch, one: ReduceOp, other: ReduceOp, x: SSAValue, y: SSAValue) -> Outcome:
    """sum(x) + sum(y) = sum(x + y)."""
    if x.type != y.type or one.properties != other.properties or not is_float(element_of(x.type)):
        return None
    return m.make(ReduceOp, m.make(ElementwiseOp, x, y, kind="sum").output, **one.properties)


@equation(op(ReduceOp, kind=either("sum", "avg")).named("total"), "reassociate")
def sum_before_layer(m: EqualMatch, total: ReduceOp) -> Outcome:
    """The sum over the results of a linear layer is one over its input, also where others read the results."""
    chain = AffineChain.before(total, LINEAR, m.ctx, shared=True)
    return None if chain is None else moved_sum(m, chain)


_MEAN = op(ReduceOp, x, kind="avg").named("mean")
_CENTERED = op(ElementwiseOp, x, _MEAN, kind="sub").named("centered")


@equation(op(ReduceOp, _CENTERED, kind=either("sum", "avg")).named("total"), "reassociate", "finite")
def sum_of_centered(m: EqualMatch, total: ReduceOp, mean: ReduceOp, x: SSAValue) -> Outcome:
    """sum(x - mean(x)) = 0."""
    return _nothing(m, total, mean, x)


@equation(
    op(ReduceOp, binary("prod", _CENTERED, value("factor")), kind=either("sum", "avg")).named("total"),
    "reassociate",
    "finite",
)
def sum_of_normalized(m: EqualMatch, total: ReduceOp, mean: ReduceOp, x: SSAValue, factor: SSAValue) -> Outcome:
    """sum((x - mean(x)) * f) = 0, where f is the same along the axes of the mean."""
    lengths = dims(factor.type)
    if any(lengths[axis] != 1 for axis in integers(mean.axes)):
        return None
    return _nothing(m, total, mean, x)


def _nothing(m: EqualMatch, total: ReduceOp, mean: ReduceOp, x: SSAValue) -> Outcome:
    import numpy as np

    is_whole = set(integers(mean.axes)) <= set(integers(total.axes)) and mean.keep_dims.value.data
    if not is_whole or not is_float(element_of(x.type)) or x.type != total.input.type:
        return None
    if not all(isinstance(size, int) and size > 0 for size in dims(x.type)):
        return None
    return filled(m, np.zeros(1), total.output)


@equation(op(ReduceOp, op(ShuffleOp, x, first_transpose=None, second_transpose=None), kind=_KINDS).named("total"))
def reduce_before_reshape(m: EqualMatch, total: ReduceOp, x: SSAValue) -> Outcome:
    """The sum over axes of a reshaped tensor is one over the axes that they were made from."""
    if total.kind.data not in (ReduceKind.MAX, ReduceKind.MIN):
        m.need("reassociate")
    axes = axes_before(dims(x.type), dims(total.input.type), integers(total.axes))
    if axes is None or not is_float(element_of(x.type)):
        return None
    smaller = m.make_after([total], ReduceOp, x, kind=total.kind.data.value, axes=axes, keep_dims=True).output
    return m.make(ShuffleOp, smaller, reshape_dims=DimsAttr.of(dims(total.output.type)), zero_is_placeholder=False)


def axes_before(source: Sequence[Dim], made: Sequence[Dim], axes: Collection[int]) -> list[int] | None:
    """Which axes of a tensor become these axes of its reshaped form; None where they are parts of axes, or unknown."""
    if not all(isinstance(size, int) and size > 0 for size in (*source, *made)):
        return None
    (before, after), found = (numbers_of(source), numbers_of(made)), list[int]()
    i = j = 0
    while i < len(before) or j < len(after):
        last, end = min(i + 1, len(before)), min(j + 1, len(after))
        left, right = prod(before[i:last]), prod(after[j:end])
        while left != right:
            if left < right:
                left, last = left * before[last], last + 1
            else:
                right, end = right * after[end], end + 1
        long = [axis for axis in range(j, end) if after[axis] > 1]
        if any(axis in axes for axis in long):
            if not all(axis in axes for axis in long):
                return None
            found += range(i, last)
        i, j = last, end
    return found


EQUATIONS = (
    reduce_before_reshape,
    reduce_once,
    sum_once,
    sum_before_layer,
    sum_of_centered,
    sum_of_normalized,
)
