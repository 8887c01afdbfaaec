"""Equations between functions of one element: signs, inverses, and what cancels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims, element_of, is_bool, is_float, numpy_dtype
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.rules import Outcome, binary, constant, either, number, op, value
from mlirt.passes.rules.equality.equation import EqualMatch, equation

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

x, y = value("x"), value("y")


@equation(op(ElementwiseOp, x, op(UnaryOp, y, kind="neg"), kind=either("sum", "sub")).named("total"))
def add_negative(m: EqualMatch, total: ElementwiseOp, x: SSAValue, y: SSAValue) -> Outcome:
    """x + -y = x - y, x - -y = x + y."""
    kind = "sub" if total.kind.data is ElementwiseKind.SUM else "sum"
    return m.make(ElementwiseOp, x, y, kind=kind)


@equation(binary("sum", op(UnaryOp, x, kind="neg"), y))
def add_to_negative(m: EqualMatch, x: SSAValue, y: SSAValue) -> Outcome:
    """-x + y = y - x."""
    return m.make(ElementwiseOp, y, x, kind="sub")


@equation(
    op(ElementwiseOp, op(UnaryOp, x, kind="neg"), op(UnaryOp, y, kind="neg"), kind=either("prod", "div")).named("both")
)
def multiply_negatives(m: EqualMatch, both: ElementwiseOp, x: SSAValue, y: SSAValue) -> Outcome:
    """-x * -y = x * y; of floats quotients too."""
    if not is_float(element_of(x.type)) and both.kind.data is ElementwiseKind.DIV:
        return None
    return m.make(ElementwiseOp, x, y, kind=both.kind.data.value)


@equation(op(UnaryOp, op(UnaryOp, x, kind=either("neg", "abs")), kind=either("abs", "cos", "cosh")).named("even"))
def drop_sign(m: EqualMatch, even: UnaryOp, x: SSAValue) -> Outcome:
    """abs(-x) = abs(x), and so for other even functions."""
    return m.make(UnaryOp, x, kind=even.kind.data.value) if is_float(element_of(x.type)) else None


@equation(op(UnaryOp, op(UnaryOp, x, kind="exp"), kind="log"), "functions")
def log_of_exp(m: EqualMatch, x: SSAValue) -> Outcome:
    """log(exp(x)) = x."""
    return x


@equation(op(UnaryOp, op(UnaryOp, x, kind="log"), kind="exp"), "functions", "finite")
def exp_of_log(m: EqualMatch, x: SSAValue) -> Outcome:
    """exp(log(x)) = x; of negative numbers there is no logarithm."""
    return x


@equation(binary("prod", op(UnaryOp, x, kind="exp"), op(UnaryOp, y, kind="exp")), "functions")
def product_of_exps(m: EqualMatch, x: SSAValue, y: SSAValue) -> Outcome:
    """exp(x) * exp(y) = exp(x + y)."""
    total = m.make(ElementwiseOp, x, y, kind="sum")
    return m.make(UnaryOp, total.output, kind="exp")


@equation(op(UnaryOp, binary("prod", x, x), kind="sqrt"), "functions")
def root_of_square(m: EqualMatch, x: SSAValue) -> Outcome:
    """sqrt(x * x) = abs(x)."""
    return m.make(UnaryOp, x, kind="abs")


@equation(binary("prod", op(UnaryOp, x, kind="sqrt").named("root"), value("other")), "functions", "finite")
def square_of_root(m: EqualMatch, root: UnaryOp, other: SSAValue, x: SSAValue) -> Outcome:
    """sqrt(x) * sqrt(x) = x; of negative numbers there is no root."""
    return x if m.is_same(root.output, other) else None


@equation(op(ElementwiseOp, x, x, kind=either("sub", "div", "xor")).named("layer"))
def cancel_itself(m: EqualMatch, layer: ElementwiseOp, x: SSAValue) -> Outcome:
    """x - x = 0, x / x = 1: of floats, where no number is infinite or not-a-number, and x / x not 0 / 0."""
    import numpy as np

    is_quotient = layer.kind.data is ElementwiseKind.DIV
    if is_quotient and not is_float(element_of(x.type)):
        return None
    if is_float(element_of(x.type)):
        found = m.range(x)
        if found.may_be_nan or not found.is_bounded or (is_quotient and found.low <= 0 <= found.high):
            m.need("finite")
    return filled(m, np.full(1, float(is_quotient)), layer.output)


@equation(op(ElementwiseOp, op(ElementwiseOp, x, y, kind="sub"), y, kind="sum").commuting(), "reassociate", "finite")
def add_what_was_subtracted(m: EqualMatch, x: SSAValue, y: SSAValue) -> Outcome:
    """(x - y) + y = x."""
    return x if x.type == m.root.results[0].type else None


@equation(op(ElementwiseOp, op(ElementwiseOp, x, y, kind="sum").commuting(), y, kind="sub"), "reassociate", "finite")
def subtract_what_was_added(m: EqualMatch, x: SSAValue, y: SSAValue) -> Outcome:
    """(x + y) - y = x."""
    return x if x.type == m.root.results[0].type else None


@equation(binary("prod", x, number(0)).named("layer"))
def multiply_by_zero(m: EqualMatch, layer: ElementwiseOp, x: SSAValue) -> Outcome:
    """x * 0 = 0: of floats, where no number is infinite or not-a-number."""
    import numpy as np

    if is_bool(element_of(x.type)):
        return None
    found = m.range(x)
    if is_float(element_of(x.type)) and (found.may_be_nan or not found.is_bounded):
        m.need("finite")
    return filled(m, np.zeros(1), layer.output)


@equation(op(SoftmaxOp, op(ElementwiseOp, x, constant("shift"), kind=either("sum", "sub"))), "reassociate")
def shift_in_softmax(m: EqualMatch, x: SSAValue, shift: SSAValue) -> Outcome:
    """softmax(x + c) = softmax(x) where c is the same along the axis: softmax subtracts the largest number anyway."""
    softmax = m.root
    assert isinstance(softmax, SoftmaxOp)
    axis, lengths = softmax.axis.value.data, dims(shift.type)
    if x.type != softmax.input.type or lengths[axis] != 1 or not all(map(math.isfinite, m.array(shift).reshape(-1))):
        return None
    return m.make(SoftmaxOp, x, **softmax.properties)


@equation(
    op(SoftmaxOp, op(ElementwiseOp, x, op(ReduceOp, x, kind=either("max", "min", "avg")).named("shift"), kind="sub")),
    "reassociate",
)
def center_in_softmax(m: EqualMatch, shift: ReduceOp, x: SSAValue) -> Outcome:
    """softmax(x - max(x)) = softmax(x), as softmax subtracts the largest number itself."""
    softmax = m.root
    assert isinstance(softmax, SoftmaxOp)
    axis, axes = softmax.axis.value.data, integers(shift.axes)
    is_along = axis in axes and shift.keep_dims.value.data
    return m.make(SoftmaxOp, x, **softmax.properties) if is_along and x.type == softmax.input.type else None


def filled(m: EqualMatch, array: Array, like: SSAValue) -> Outcome:
    """A tensor of one number."""
    import numpy as np

    sizes = dims(like.type)
    if not all(isinstance(size, int) for size in sizes):
        return None
    one = m.constant(np.reshape(array, [1] * len(sizes)).astype(numpy_dtype(element_of(like.type))), "known")
    return one if dims(one.type) == sizes else m.make(BroadcastOp, one, size=DimsAttr.of(sizes))


EQUATIONS = (
    add_negative,
    add_to_negative,
    multiply_negatives,
    drop_sign,
    log_of_exp,
    exp_of_log,
    product_of_exps,
    root_of_square,
    square_of_root,
    cancel_itself,
    add_what_was_subtracted,
    subtract_what_was_added,
    multiply_by_zero,
    shift_in_softmax,
    center_in_softmax,
)
