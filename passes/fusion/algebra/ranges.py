"""Equations by value ranges: maxima, clips and comparisons whose outcome is known."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.tensor_types import dims, element_of, is_float, numpy_dtype
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.rules import Outcome, binary, constant, either, op, value
from mlirt.passes.rules.equality.equation import EqualMatch, equation
from mlirt.passes.rules.equality.value_ranges import clip_bounds

x, y = value("x"), value("y")
_KIND = ElementwiseKind
_ORDERED = either("greater", "less", "greater_equal", "less_equal", "equal")
_SAME_ABOVE_ZERO = ("leaky_relu", "elu", "celu")


@equation(op(ActivationOp, x, kind="relu"))
def drop_relu(m: EqualMatch, x: SSAValue) -> Outcome:
    """relu(x) = x where x >= 0; not-a-number stays what it is."""
    return x if m.range(x).low >= 0 else None


@equation(op(ActivationOp, x, kind=either(*_SAME_ABOVE_ZERO)).named("layer"))
def drop_slope(m: EqualMatch, layer: ActivationOp, x: SSAValue) -> Outcome:
    """leaky_relu(x), elu(x), celu(x) = x where x >= 0."""
    return x if m.range(x).low >= 0 else None


@equation(op(ActivationOp, x, kind="clip").named("clip"))
def drop_clip(m: EqualMatch, clip: ActivationOp, x: SSAValue) -> Outcome:
    """clip(x) = x where its bounds bound nothing; one number where all of x is beyond one of them."""
    if not is_float(element_of(x.type)):
        return None
    (low, high), found = clip_bounds(clip), m.range(x)
    if low > high:
        return None
    if found.within(low, high):
        return x
    known = low if found.high <= low else high if found.low >= high else None
    return _everywhere(m, clip.output, known, found.may_be_nan) if known is not None else None


@equation(op(ActivationOp, op(ActivationOp, x, kind=either("clip", "relu")).named("inner"), kind="clip").named("clip"))
def join_clips(m: EqualMatch, clip: ActivationOp, inner: ActivationOp, x: SSAValue) -> Outcome:
    """clip(clip(x)) = clip(x) where both leave some numbers as they are."""
    first = (0.0, math.inf) if inner.kind.data is ActivationKind.RELU else clip_bounds(inner)
    second = clip_bounds(clip)
    low, high = max(first[0], second[0]), min(first[1], second[1])
    if not is_float(element_of(x.type)) or low > high or first[0] > first[1] or second[0] > second[1]:
        return None
    return m.make(ActivationOp, x, kind="clip", alpha=low, beta=high)


@equation(binary("max", x, y) | binary("min", x, y))
def drop_bound(m: EqualMatch, x: SSAValue, y: SSAValue) -> Outcome:
    """max(x, y) = x where x is never below y; where y may be no number, that must not matter."""
    (of_x, of_y), root = (m.range(x), m.range(y)), m.root
    assert isinstance(root, ElementwiseOp)
    is_max = root.kind.data is _KIND.MAX
    if x.type != root.output.type or (of_x.low < of_y.high if is_max else of_x.high > of_y.low):
        return None
    if of_y.may_be_nan:
        m.need("finite")
    return x


@equation(binary("max", binary("max", x, constant("first")), constant("second")))
def join_maxima(m: EqualMatch, x: SSAValue, first: SSAValue, second: SSAValue) -> Outcome:
    """max(max(x, a), b) = max(x, max(a, b))."""
    return _joined_bounds(m, x, first, second)


@equation(binary("min", binary("min", x, constant("first")), constant("second")))
def join_minima(m: EqualMatch, x: SSAValue, first: SSAValue, second: SSAValue) -> Outcome:
    """min(min(x, a), b) = min(x, min(a, b))."""
    return _joined_bounds(m, x, first, second)


def _joined_bounds(m: EqualMatch, x: SSAValue, first: SSAValue, second: SSAValue) -> Outcome:
    import numpy as np

    root = m.root
    assert isinstance(root, ElementwiseOp)
    if max(m.array(first).size, m.array(second).size) > _MAX_ELEMENTS:
        return None
    combine = np.maximum if root.kind.data is _KIND.MAX else np.minimum
    bound = m.constant(combine(m.array(first), m.array(second)), "bound")
    return m.make(ElementwiseOp, x, bound, kind=root.kind.data.value)


_MAX_ELEMENTS = 1 << 20


@equation(op(UnaryOp, x, kind="abs"))
def drop_abs(m: EqualMatch, x: SSAValue) -> Outcome:
    """abs(x) = x where x >= 0, -x where x <= 0."""
    found = m.range(x)
    if found.low >= 0:
        return x
    return m.make(UnaryOp, x, kind="neg") if found.high <= 0 and is_float(element_of(x.type)) else None


@equation(op(ElementwiseOp, x, y, kind=_ORDERED).named("comparison"))
def decide_comparison(m: EqualMatch, comparison: ElementwiseOp, x: SSAValue, y: SSAValue) -> Outcome:
    """x > y is known where one range lies above the other; a comparison with not-a-number is false."""
    a, b, kind = m.range(x), m.range(y), comparison.kind.data
    if kind in (_KIND.LESS, _KIND.LESS_EQUAL):
        a, b, kind = b, a, _KIND.GREATER if kind is _KIND.LESS else _KIND.GREATER_EQUAL
    never = {_KIND.GREATER: a.high <= b.low, _KIND.GREATER_EQUAL: a.high < b.low}
    always = {_KIND.GREATER: a.low > b.high, _KIND.GREATER_EQUAL: a.low >= b.high}
    if kind is _KIND.EQUAL:
        is_never, is_always = a.high < b.low or b.high < a.low, False
    else:
        is_never, is_always = never[kind], always[kind]
    if not is_never and not is_always:
        return None
    if is_always and (a.may_be_nan or b.may_be_nan):
        m.need("finite")
    return _everywhere(m, comparison.output, is_always, False)


@equation(op(ReduceOp, op(ActivationOp, x, kind=either("relu", "clip")).named("inner"), kind=either("max", "min")))
def reduce_before_bounds(m: EqualMatch, inner: ActivationOp, x: SSAValue) -> Outcome:
    """max(relu(x)) = relu(max(x)): bounds keep the order of numbers, so that few of them need it."""
    root = m.root
    assert isinstance(root, ReduceOp)
    if any(size == 0 or not isinstance(size, int) for size in dims(x.type)):
        return None  # the largest of no numbers is minus infinity, whatever its bounds
    total = m.make_after([root], ReduceOp, x, **root.properties)
    return m.make_after([inner], ActivationOp, total.output, **inner.properties)


def _everywhere(m: EqualMatch, like: SSAValue, known: float, may_be_nan: bool) -> Outcome:
    """One number in the place of a tensor."""
    import numpy as np

    sizes = dims(like.type)
    if not all(isinstance(size, int) for size in sizes):
        return None
    if may_be_nan:
        m.need("finite")
    one = m.constant(np.full([1] * len(sizes), known, numpy_dtype(element_of(like.type))), "known")
    return one if dims(one.type) == sizes else m.make(BroadcastOp, one, size=DimsAttr.of(sizes))


EQUATIONS = (
    drop_relu,
    drop_slope,
    drop_clip,
    join_clips,
    drop_bound,
    join_maxima,
    join_minima,
    drop_abs,
    decide_comparison,
    reduce_before_bounds,
)
